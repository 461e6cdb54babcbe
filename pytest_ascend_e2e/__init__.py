"""End-to-end tests of RL training (verl) on Huawei Ascend NPUs, as a pytest plugin.

What a test file imports stands here. Importing it loads neither pytest's plugin nor any library of the training.
"""

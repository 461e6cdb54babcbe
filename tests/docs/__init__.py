"""Documentation as tests."""

#!/bin/sh
# Stands for the interpreter of a training environment: `-m verl.trainer.main_ppo` is the fake trainer, all else the real one.
# REAL_PYTHON and FAKES are filled in by the test that copies this file.
if [ "$1" = "-m" ] && [ "$2" = "verl.trainer.main_ppo" ]; then
    shift 2
    exec "@REAL_PYTHON@" "@FAKES@/verl_trainer.py" "$@"
fi
exec "@REAL_PYTHON@" "$@"

#!/bin/sh
# Stands for the interpreter of a training environment: `-m verl.trainer.main_ppo` is the fake trainer, all else the real one.
# What verl composed once is kept in ANSWERS for the other tests of a session, whose hosts differ in their place alone: a child
# takes five seconds for it. The words between @ are filled in by what copies this file.
if [ "$1" = "-m" ] && [ "$2" = "verl.trainer.main_ppo" ]; then
    shift 2
    exec "@REAL_PYTHON@" "@FAKES@/verl_trainer.py" "$@"
fi
if [ "$1" = "-m" ] && [ "$2" = "pytest_ascend_e2e.preflight.compose" ]; then
    asked=$(mktemp "@ANSWERS@/asked.XXXXXX")
    sed "s#@ROOT@#<host>#g" > "$asked"
    answer="@ANSWERS@/$(sha256sum < "$asked" | cut -c1-64).json"
    if [ ! -f "$answer" ]; then
        sed "s#<host>#@ROOT@#g" "$asked" | "@REAL_PYTHON@" "$@" > "$asked.answer" || exit
        sed "s#@ROOT@#<host>#g" "$asked.answer" > "$asked.kept"
        mv "$asked.kept" "$answer"
    fi
    sed "s#<host>#@ROOT@#g" "$answer"
    exit
fi
exec "@REAL_PYTHON@" "$@"

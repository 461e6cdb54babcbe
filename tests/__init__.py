"""A package, since verl installs one of the same name, which would hide this directory from an import."""

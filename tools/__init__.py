"""What is run while developing and is no part of the package."""

"""What several tests stand on: a trainer, a device tool."""

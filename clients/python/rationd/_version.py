"""The version of this package: that of the project."""

VERSION = "0.1.0"

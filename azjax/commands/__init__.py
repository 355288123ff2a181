"""The commands of `azjax`, a file each."""

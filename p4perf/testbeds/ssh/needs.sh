# Names what is missing on the node: PCI addresses without a device. Arguments: the addresses.
for address in "$@"; do
	[ -e "/sys/bus/pci/devices/$address" ] || printf '%s\n' "$address"
done

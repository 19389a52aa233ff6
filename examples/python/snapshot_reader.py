#!/usr/bin/env python3
"""Reads a snapshot of a filter and looks up keys in it. It needs Python 3.8 or later, and nothing else.

    snapshot_reader.py SNAPSHOT KEY_FILE [TICK] < KEYS

KEY_FILE has the 16 bytes of the StableHashBuilder's key. The keys come one per line. For each of them, the program prints
`absent` or `present`, and for a maplet `present` with the values. In a filter whose entries expire, a key is looked up at
the tick that the snapshot was saved at, or at a later TICK.

The guide's page "Snapshot format" describes every step.
"""
import binascii
import functools
import math
import struct
import sys

MASK_64, MASK_32 = 2**64 - 1, 2**32 - 1
GOLDEN = 0x9E3779B97F4A7C15
CONCURRENT, MAPLET, EXPIRING, GROWABLE, RECENT, LIMITER = 1, 4, 5, 6, 7, 8
# Each layout that a growable filter's buckets can have: whether it is semi-sorted, its slots, the bits of a fingerprint.
GROWABLE_LAYOUTS = [(0, 8, 8), (0, 7, 9), (0, 6, 10), (1, 6, 12), (0, 5, 12), (1, 5, 14), (0, 4, 16), (1, 4, 17),
                    (0, 3, 21), (1, 3, 22), (0, 2, 32)]


def siphash_1_3(key, data):
    """SipHash with one round per block of eight bytes and three rounds at the end (Aumasson and Bernstein, 2012)."""
    k0, k1 = struct.unpack("<QQ", key)
    v = (k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573)
    whole = len(data) // 8 * 8
    padded = data + bytes(7 - (len(data) - whole)) + bytes([len(data) % 256])
    for (block,) in struct.iter_unpack("<Q", padded):
        v0, v1, v2, v3 = siphash_round(v[0], v[1], v[2], v[3] ^ block)
        v = (v0 ^ block, v1, v2, v3)
    v = siphash_round(*siphash_round(*siphash_round(v[0], v[1], v[2] ^ 0xFF, v[3])))
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def siphash_round(v0, v1, v2, v3):
    v0, v2 = (v0 + v1) & MASK_64, (v2 + v3) & MASK_64
    v1, v3 = rotated(v1, 13) ^ v0, rotated(v3, 16) ^ v2
    v0, v2 = (rotated(v0, 32) + v3) & MASK_64, (v2 + v1) & MASK_64
    return v0, rotated(v1, 17) ^ v2, rotated(v2, 32), rotated(v3, 21) ^ v0


def rotated(value, by):
    return (value << by | value >> (64 - by)) & MASK_64


def mixed(hash):
    product = hash * ((2 * hash + GOLDEN) & MASK_64)
    return ((product >> 64 ^ product) & MASK_64) * GOLDEN & MASK_64


class Layout:
    """How the 64 bits of a bucket are divided."""

    def __init__(self, semi_sorted, slots, fingerprint_bits, payload_bits=0):
        self.slots = slots
        self.high_bits = (4 if slots <= 6 else 3) if semi_sorted else 0
        self.low_bits = fingerprint_bits - self.high_bits
        self.lane_bits = self.low_bits + payload_bits
        self.payload_mask = (2**payload_bits - 1) << self.low_bits
        self.fingerprint_mask = 2 ** (self.high_bits + self.lane_bits) - 1 - self.payload_mask
        self.rank_bits = (math.comb(2**self.high_bits - 1 + slots, slots) - 1).bit_length()

    def entries(self, word):
        """What the occupied slots hold: the low part, the payload above it, and the high part above that."""
        highs = high_parts(word >> (64 - self.rank_bits), self.slots) if self.high_bits else (0,) * self.slots
        lanes = ((word >> slot * self.lane_bits) & (2**self.lane_bits - 1) for slot in range(self.slots))
        return [high << self.lane_bits | lane for lane, high in zip(lanes, highs) if lane]


@functools.lru_cache(maxsize=None)
def high_parts(rank, slots):
    """The sorted high parts whose rank this is, in the combinatorial number system."""
    highs = [0] * slots
    for slot in reversed(range(slots)):
        value = slot
        while math.comb(value + 1, slot + 1) <= rank:
            value += 1
        rank -= math.comb(value, slot + 1)
        highs[slot] = value - slot
    return highs


class Snapshot:
    def __init__(self, data, key):
        self.data, self.at, self.checksum, self.key = data, 0, 0, key
        if self.take("8s") != b"\x89CCF\r\n\x1a\n":
            raise ValueError("this is not a snapshot of a filter")
        version, self.kind, probe, schema_len = self.take("H"), self.take("B"), self.take("Q"), self.take("B")
        if version != 4 or self.kind not in (CONCURRENT, MAPLET, EXPIRING, GROWABLE, RECENT, LIMITER):
            raise ValueError(f"version {version}, kind {self.kind}: this program reads version 4, kinds 1 and 4 to 8")
        self.schema = self.take(f"{schema_len}s").decode()
        has_position, position, attachment_len = self.take("B"), self.take("Q"), self.take("I")
        self.position = position if has_position else None
        self.verify()
        self.attachment = self.take(f"{attachment_len}s")
        self.verify()
        probe_bytes = b"concurrent-cuckoo-filter\xff" + struct.pack("<QIQ", 0x0123456789ABCDEF, 0x89ABCDEF, 4)
        if siphash_1_3(key, probe_bytes + b"\x00\x01\xfe\xff") != probe:
            raise ValueError("the snapshot was saved with another key of the hasher, or with another hasher")

        payload_bits = 0
        if self.kind in (MAPLET, EXPIRING, RECENT, LIMITER):
            payload_bits = self.take("B")
        if self.kind == EXPIRING:
            self.longest, seconds, nanoseconds, flags = self.take("I"), self.take("Q"), self.take("I"), self.take("B")
            self.tick_length = seconds + nanoseconds / 1e9
            self.now, self.place, self.lag = self.take("Q"), self.take("H"), self.take("I")
            self.evicted = self.take("H") if flags & 2 else 0
            self.ring = 2**payload_bits
        if self.kind == RECENT:
            by_time, self.per_tick, self.lifetime, self.of_tick = (self.take(format) for format in "BQHQ")
            self.unit = "nanoseconds" if by_time else "keys"
            self.now, (self.place, self.lag, self.evicted) = 0, (self.take(format) for format in "HIH")
            self.ring = 2**payload_bits
        if self.kind == LIMITER:
            self.refuses, self.per_tick, self.cost, self.burst, self.of_tick = (self.take(format) for format in "BQIIQ")
            self.now, self.evicted, (self.place, self.lag) = 0, 0, (self.take(format) for format in "HI")
            self.ring = 2**payload_bits
        if self.kind == GROWABLE:
            self.encoding, self.base_bits, self.side_bits = self.take("B"), self.take("B"), self.take("B")
            self.smallest, self.largest, self.load = self.take("Q"), self.take("Q"), self.take("d")
        if self.kind != CONCURRENT:
            self.verify()

        encoding, slots, fingerprint_bits, self.buckets = self.take("B"), self.take("B"), self.take("B"), self.take("Q")
        self.verify()
        self.layout = Layout(encoding & 1, slots, fingerprint_bits, payload_bits)
        self.words = struct.unpack(f"<{self.buckets}Q", self.take(f"{8 * self.buckets}s"))
        self.occupied = self.take("Q")
        self.verify()

    def take(self, format):
        size = struct.calcsize("<" + format)
        if len(self.data) < self.at + size:
            raise ValueError("the snapshot is truncated")
        (value,) = struct.unpack_from("<" + format, self.data, self.at)
        self.checksum = binascii.crc32(self.data[self.at : self.at + size], self.checksum)
        self.at += size
        return value

    def verify(self):
        """Compares a checksum, which is not part of later ones."""
        computed = self.checksum
        if self.take("I") != computed:
            raise ValueError(f"the snapshot is damaged: the checksum at byte {self.at - 4} is wrong")
        self.checksum = computed

    def find(self, text):
        """What the slots with the key's fingerprint hold beside it: its values in a maplet, its expiries, or zeros."""
        hash = mixed(siphash_1_3(self.key, text.encode() + b"\xff"))
        return self.find_in_growable(hash) if self.kind == GROWABLE else self.find_in_table(hash)

    def find_in_table(self, hash):
        layout, count = self.layout, self.buckets
        fingerprint = hash & layout.fingerprint_mask
        if fingerprint & (2**layout.low_bits - 1) == 0:
            fingerprint += 1
        first = hash * count >> 64
        spread = (fingerprint * 0x9E3779B9 ^ fingerprint * 0x3C6F) & MASK_32
        total = spread * count >> 32 | (count % 2 == 0)
        entries = (entry for bucket in {first, (total - first) % count} for entry in layout.entries(self.words[bucket]))
        of_key = (entry for entry in entries if entry & layout.fingerprint_mask == fingerprint)
        return sorted({(entry & layout.payload_mask) >> layout.low_bits for entry in of_key})

    def find_in_growable(self, hash):
        hash += hash & 0xFF == 0
        base, even = hash & (2**self.base_bits - 1), hash >> 32 & (2**self.side_bits - 2)
        odd = even ^ ((base * GOLDEN & MASK_64) >> 32 | 1)
        level = self.buckets.bit_length() - 1
        for side in (even, odd):
            depth = level + (side % 2**level < self.buckets - 2**level)
            stored = base | even >> depth << self.base_bits
            if stored in self.layout_at(depth).entries(self.words[side % 2**depth]):
                return [0]
        return []

    @functools.lru_cache(maxsize=None)
    def layout_at(self, depth):
        stored_bits = self.base_bits + self.side_bits - depth
        fit = [layout for layout in GROWABLE_LAYOUTS if layout[2] >= stored_bits]
        return Layout(*next((layout for layout in fit if layout[0] == self.encoding), fit[0]))

    def contains(self, text, tick=None):
        """Whether the filter contains the key: in a filter whose entries expire, at this tick, or when it was saved."""
        if self.kind not in (EXPIRING, RECENT, LIMITER):
            return self.find(text) != []
        further = [(place - self.place - 1) % self.ring for place in self.find(text)]
        expiries = [self.now + self.evicted + 1 + ticks for ticks in further if ticks + self.lag < self.ring]
        return any(expiry > (self.now if tick is None else tick) for expiry in expiries)


def main(path, key_path, tick=None):
    with open(path, "rb") as file, open(key_path, "rb") as key_file:
        snapshot = Snapshot(file.read(), key_file.read())
    for line in sys.stdin.buffer:
        text = line.rstrip(b"\n").decode()
        if not snapshot.contains(text, None if tick is None else int(tick)):
            print("absent")
        else:
            print("present", *(snapshot.find(text) if snapshot.kind == MAPLET else ()))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")

//! Corrects parts of a snapshot, so that the fuzzer does not need to guess a checksum. The offsets are those of the
//! format in `docs/snapshot_format.md`.

// `view` uses a part of this.
#![allow(dead_code)]

use std::sync::LazyLock;

use concurrent_cuckoo_filter::Encoding;

use crate::kinds::{Expiring, Fixed, Growable, Kind, Maplet, OneTable};

/// The offset of the number of the kind.
const KIND: usize = 10;

/// The offset of the length of the schema.
const SCHEMA: usize = 19;

/// The bytes of the header after the schema: a flag, a position, the length of the attachment, a seal (a checksum).
const AFTER_SCHEMA: usize = 17;

/// The bytes of the fields that a growable filter has besides its table: encoding, bits, doublings, buckets at first
/// and at most, the load while it grows.
const HEAD: usize = 27;

/// The number of buckets of a growable filter is a multiple of this.
const GROUP: usize = 32;

/// The bytes of the field that a maplet has besides its table: the bits of a value.
const HEAD_OF_MAPLET: usize = 1;

/// The bytes of the fields that a filter whose entries expire has besides its table: the bits of an end, and its
/// clock.
const HEAD_OF_EXPIRING: usize = 32;

/// Of these fields, the place of the flags.
const FLAGS: usize = 17;

/// The bytes of the number of evicted ticks, which only a filter that evicts has, after the other fields.
const EVICTED: usize = 2;

const SEAL: usize = 4;

/// The bytes of a section besides its words: layout, number of buckets, a seal, the count.
const SECTION: usize = 23;

/// The layouts of maplets and of filters whose entries expire. The bits of a value or an end are counted among
/// those of a fingerprint.
const WITH_PAYLOAD: [[u8; 3]; 5] = [[1, 6, 12], [1, 5, 14], [1, 4, 17], [1, 3, 22], [0, 2, 32]];

/// The bytes before the schema, up to the probe. They are the same in all snapshots with that key, except for the
/// kind. Making them also makes the allocations that a process makes only once: for the decode tables of the
/// semi-sorted layouts, and for finding the number of processors.
static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut header = Vec::new();
    for rate in [0.035, 0.015, 0.003, 0.001, 1e-4, 2e-6] {
        let builder = OneTable::builder_with_hasher(Fixed::default()).capacity(100_000).false_positive_rate(rate);
        header = builder.encoding(Encoding::SemiSorted).build().unwrap().snapshot(None, &[]);
    }
    header.truncate(SCHEMA);
    header
});

/// The first three fields of a growable filter, its number of buckets at first and at its largest size, and the layouts of
/// its buckets by depth.
struct Growth {
    head: [u8; 3],
    first: usize,
    largest: usize,
    layouts: [[u8; 3]; 32],
}

static GROWTHS: LazyLock<Vec<Growth>> = LazyLock::new(|| {
    use Encoding::{Plain, SemiSorted};

    let asked = [
        (0.9, None),
        (0.3, Some(Plain)),
        (0.03, None),
        (0.03, Some(SemiSorted)),
        (0.001, None),
        (0.001, Some(Plain)),
        (1e-4, Some(SemiSorted)),
        (1e-6, None),
    ];
    asked.map(|(rate, encoding)| growth(rate, encoding)).into()
});

fn growth(rate: f64, encoding: Option<Encoding>) -> Growth {
    let builder = Growable::builder_with_hasher(Fixed::default()).capacity(1).false_positive_rate(rate).schema("");
    let builder = if let Some(encoding) = encoding { builder.encoding(encoding) } else { builder };
    // The largest size is not far, so there are several layouts.
    let filter = builder.max_capacity(2_000).build().unwrap();
    let at = SCHEMA + 1 + AFTER_SCHEMA + SEAL;
    let mut layouts = [[0; 3]; 32];
    loop {
        let snapshot = filter.snapshot(None, &[]);
        let section = &snapshot[at + HEAD + SEAL..];
        let buckets = number(&section[3..11]);
        layouts[buckets.ilog2() as usize].copy_from_slice(&section[..3]);
        if filter.reserve(filter.capacity() + 1).is_err() {
            let (head, first) = (snapshot[at..at + 3].try_into().unwrap(), number(&snapshot[at + 3..at + 11]));
            return Growth { head, first: first as usize, largest: buckets as usize, layouts };
        }
    }
}

/// Makes everything that the repair needs, and all decode tables, so that no input is charged for it.
pub fn prepare() {
    // At these rates a filter has tables of all semi-sorted layouts, as it grows.
    for rate in [0.9, 1e-4] {
        let builder = Growable::builder_with_hasher(Fixed::default()).capacity(1).max_capacity(20_000);
        let filter = builder.false_positive_rate(rate).encoding(Encoding::SemiSorted).build().unwrap();
        filter.reserve(20_000).unwrap();
    }
    LazyLock::force(&HEADER);
    LazyLock::force(&GROWTHS);
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// The schema in the snapshot, or as much of it as is there.
pub fn stated_schema(bytes: &[u8]) -> String {
    let (len, rest) = bytes.get(SCHEMA..).and_then(<[u8]>::split_first).unwrap_or((&0, &[]));
    String::from_utf8_lossy(&rest[..rest.len().min(usize::from(*len))]).into_owned()
}

/// The position and the attachment of an accepted snapshot.
pub fn label(snapshot: &[u8]) -> (Option<u64>, &[u8]) {
    let stated = &snapshot[SCHEMA + 1 + usize::from(snapshot[SCHEMA])..];
    let attached = u32::from_le_bytes(stated[9..13].try_into().unwrap()) as usize;
    ((stated[0] == 1).then(|| number(&stated[1..9])), &stated[AFTER_SCHEMA..AFTER_SCHEMA + attached])
}

/// Corrects parts of a snapshot of a filter of that kind. `level` says which: 1 the seals; 2 also the header; 3
/// also the number of buckets, by the length, the layout, and the count of what the table holds.
///
/// Schema and position stay as they are. From level 2 on, the flag of the position is 0 or 1, and the attachment is
/// no longer than there is room for.
pub fn repair(bytes: &mut [u8], level: u8, kind: u8) {
    let Some(&schema) = bytes.get(SCHEMA) else { return };
    let flag = SCHEMA + 1 + usize::from(schema);
    let head_len = match kind {
        OneTable::NUMBER => 0,
        Maplet::NUMBER => HEAD_OF_MAPLET + SEAL,
        Expiring::NUMBER => HEAD_OF_EXPIRING + SEAL,
        _ => HEAD + SEAL,
    };
    // The room that the attachment and the tables share.
    let Some(room) = bytes.len().checked_sub(flag + AFTER_SCHEMA + SEAL + head_len + SEAL) else { return };
    if level == 0 {
        return;
    }

    let length = flag + 9..flag + 13;
    let mut attached = u32::from_le_bytes(bytes[length.clone()].try_into().unwrap()) as usize;
    if level >= 2 {
        bytes[..SCHEMA].copy_from_slice(&HEADER);
        bytes[KIND] = kind;
        bytes[flag] &= 1;
        attached %= room + 1;
        bytes[length.clone()].copy_from_slice(&(attached as u32).to_le_bytes());
    }
    let attachment = length.end + SEAL..length.end + SEAL + attached.min(room);
    let mut head = attachment.end + SEAL..attachment.end + SEAL + head_len;
    if kind == Expiring::NUMBER && matches!(bytes[head.start + FLAGS], 2 | 3) {
        head.end += EVICTED;
        if head.end + SEAL > bytes.len() {
            return;
        }
    }
    if level == 3 {
        let (before, tables) = bytes.split_at_mut(head.end);
        let len = tables.len() - SEAL;
        make_fit(&mut before[head.clone()], &mut tables[..len], kind);
    }

    let mut seals = vec![length.end, attachment.end];
    if kind != OneTable::NUMBER {
        seals.push(head.end - SEAL);
    }
    let mut section = head.end;
    if let Some(words) = (bytes.len() - section).checked_sub(SECTION + SEAL) {
        seals.push(section + 11);
        let buckets = number(&bytes[section + 3..section + 11]).min(words as u64 / 8);
        section += SECTION + 8 * buckets as usize;
    }
    seals.push(section);
    let mut sum = crc32fast::Hasher::new();
    let mut begin = 0;
    for seal in seals {
        sum.update(&bytes[begin..seal]);
        begin = seal + SEAL;
        bytes[seal..begin].copy_from_slice(&sum.clone().finalize().to_le_bytes());
    }
}

/// Makes a filter of that kind out of `sections`: as many tables as `head` asks for, or as fit, and as large as
/// possible.
fn make_fit(head: &mut [u8], sections: &mut [u8], kind: u8) {
    let len = sections.len();
    let payload_bits = match kind {
        Maplet::NUMBER => make_payload_fit(&mut head[0], sections),
        Expiring::NUMBER => {
            let expiry_bits = make_payload_fit(&mut head[0], sections);
            if expiry_bits > 0 {
                make_clock_fit(head, expiry_bits);
            }
            expiry_bits
        }
        _ => 0,
    };
    match kind {
        OneTable::NUMBER if len >= SECTION + 8 => {
            hold_what_it_can(section(sections, None, buckets_in(len)), payload_bits, &|_| None);
        }
        Maplet::NUMBER if len >= SECTION + 2 * 8 => {
            hold_what_it_can(section(sections, None, buckets_in(len)), payload_bits, &Some);
        }
        Expiring::NUMBER if len >= SECTION + 2 * 8 => {
            hold_what_it_can(section(sections, None, buckets_in(len)), payload_bits, &possible_ends(head));
        }
        Growable::NUMBER if len >= SECTION + GROUP * 8 => {
            let growth = &GROWTHS[usize::from(head[1]) % GROWTHS.len()];
            let buckets = ((len - SECTION) / 8 / GROUP * GROUP).min(growth.largest);
            // The layout of buckets that are split from the last whole level on is not known.
            let level = buckets.ilog2() as usize;
            let buckets = if growth.layouts[level + 1] == [0; 3] { 1 << level } else { buckets };
            let Some(more) = buckets.checked_sub(growth.first) else { return };
            let first = growth.first + usize::from(head[3]) % (more / GROUP + 1) * GROUP;
            head[..3].copy_from_slice(&growth.head);
            head[3..11].copy_from_slice(&(first as u64).to_le_bytes());
            head[11..19].copy_from_slice(&(growth.largest as u64).to_le_bytes());
            head[19..HEAD].copy_from_slice(&0.85f64.to_le_bytes());
            let layout = growth.layouts[buckets.ilog2() as usize];
            hold_what_grows(section(sections, Some(layout), buckets), buckets, growth);
        }
        _ => (),
    }
}

/// The section of a table of so many buckets, with this layout if one is given.
fn section(sections: &mut [u8], layout: Option<[u8; 3]>, buckets: usize) -> &mut [u8] {
    let section = &mut sections[..SECTION + 8 * buckets];
    if let Some(layout) = layout {
        section[..3].copy_from_slice(&layout);
    }
    section[3..11].copy_from_slice(&(buckets as u64).to_le_bytes());
    section
}

/// Sets the bits of a value or an end to as many as there is room for. Uses the layout with as many slots as the
/// section says, or another one. Returns the number of bits, or 0 if there is no room for a section.
fn make_payload_fit(payload_bits: &mut u8, section: &mut [u8]) -> u32 {
    if section.len() < SECTION {
        return 0;
    }
    let stated = section[1];
    let [encoding, slots, bits] = WITH_PAYLOAD
        .into_iter()
        .find(|layout| layout[1] == stated)
        .unwrap_or(WITH_PAYLOAD[usize::from(stated) % WITH_PAYLOAD.len()]);
    // At least three bits of the fingerprint's low part are left.
    let most = (bits - 4 * encoding - 3).min(16);
    *payload_bits = 1 + payload_bits.wrapping_sub(1) % most;
    // The limit of the capacity stays as it is.
    let encoding_and_limit = section[0] & !1 | encoding;
    section[..3].copy_from_slice(&[encoding_and_limit, slots, bits - *payload_bits]);
    (*payload_bits).into()
}

/// Makes the fields of a clock possible for ends of this many bits. The number of bits is the first field.
fn make_clock_fit(head: &mut [u8], expiry_bits: u32) {
    let round = 1u32 << expiry_bits;
    let stated = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let longest = 1 + stated(&head[1..5]).wrapping_sub(1) % (round - 1);
    let nanoseconds = stated(&head[13..17]) % 1_000_000_000;
    head[1..5].copy_from_slice(&longest.to_le_bytes());
    head[13..17].copy_from_slice(&nanoseconds.to_le_bytes());
    // Whether it evicts is clear by now: by that, it has more bytes.
    head[FLAGS] = head[FLAGS] & 1 | if evicts(head) { 2 } else { 0 };
    if head[FLAGS] & 1 == 0 {
        head[18..HEAD_OF_EXPIRING].fill(0);
    }
    let place = u16::from_le_bytes(head[26..28].try_into().unwrap()) & (round - 1) as u16;
    let lag = stated(&head[28..HEAD_OF_EXPIRING]) % (round + 1);
    head[26..28].copy_from_slice(&place.to_le_bytes());
    head[28..HEAD_OF_EXPIRING].copy_from_slice(&lag.to_le_bytes());
    if evicts(head) {
        let evicted = if head[FLAGS] & 1 == 0 { 0 } else { u32::from(evicted(head)) % longest };
        head[HEAD_OF_EXPIRING..][..EVICTED].copy_from_slice(&(evicted as u16).to_le_bytes());
    }
}

/// Whether this head, with its seal, has a number of evicted ticks.
fn evicts(head: &[u8]) -> bool {
    head.len() == HEAD_OF_EXPIRING + EVICTED + SEAL
}

fn evicted(head: &[u8]) -> u16 {
    if evicts(head) { u16::from_le_bytes(head[HEAD_OF_EXPIRING..][..EVICTED].try_into().unwrap()) } else { 0 }
}

/// A function from any end to one that an entry can have by this clock, or to none if there can be no entry.
fn possible_ends(head: &[u8]) -> impl Fn(u16) -> Option<u16> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let (last, longest, lag) = ((1u32 << head[0]) - 1, number(&head[1..5]), number(&head[28..HEAD_OF_EXPIRING]));
    let (is_known, now) = (head[FLAGS] & 1 == 1, u32::from(u16::from_le_bytes(head[26..28].try_into().unwrap())));
    let ends = (lag + longest - u32::from(evicted(head))).min(last + 1);
    move |end| {
        let after_swept = u32::from(end).wrapping_sub(now.wrapping_sub(lag).wrapping_add(1)) & last;
        let first = now.wrapping_sub(lag).wrapping_add(1);
        is_known.then(|| (first.wrapping_add(after_swept % ends) & last) as u16)
    }
}

/// The most buckets of a table whose section has this many bytes. The bytes must be enough for one bucket.
fn buckets_in(len: usize) -> usize {
    match (len - SECTION) / 8 {
        1 => 1,
        fit => fit / 2 * 2,
    }
}

/// Sets the count of a section to the copies that it has, if the section has a valid layout, with this many bits of
/// a value or an end. Clears the bits that a plain bucket never sets, including those of a value without a
/// fingerprint. Replaces each value or end by what `payload` makes of it; if that is nothing, in a plain bucket, the copy
/// goes too.
fn hold_what_it_can(section: &mut [u8], payload_bits: u32, payload: &dyn Fn(u16) -> Option<u16>) {
    let (header, rest) = section.split_at_mut(15);
    let [encoding, slots, bits] = [header[0] & 1, header[1], header[2]].map(u32::from);
    let Some(low) = bits.checked_sub(4 * encoding).filter(|&low| (1..=32).contains(&low)) else { return };
    let lane = low + payload_bits;
    if slots * lane > 64 {
        return;
    }
    let (words, count) = rest.split_at_mut(rest.len() - 8);
    let mut copies = 0u64;
    for bytes in words.chunks_exact_mut(8) {
        let mut word = number(bytes);
        if encoding == 0 {
            word &= u64::MAX.checked_shr(64 - slots * lane).unwrap_or(0);
            for at in (0..slots).map(|slot| slot * lane) {
                if word >> at & ((1 << low) - 1) == 0 {
                    word &= !(((1 << lane) - 1) << at);
                }
            }
        }
        for at in (0..slots).map(|slot| slot * lane).filter(|_| payload_bits > 0) {
            if word >> at & ((1 << lane) - 1) != 0 {
                let (payload_at, all) = (at + low, (1 << payload_bits) - 1);
                match payload((word >> payload_at & all) as u16) {
                    Some(fit) => word = word & !(all << payload_at) | u64::from(fit) << payload_at,
                    None if encoding == 0 => word &= !(((1 << lane) - 1) << at),
                    None => (),
                }
            }
        }
        copies += (0..slots).filter(|slot| word >> (slot * lane) & ((1 << lane) - 1) != 0).count() as u64;
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    count.copy_from_slice(&copies.to_le_bytes());
}

/// The same for the buckets of a filter that grows, which have two depths. The eight low bits of a slot that is taken are
/// never all 0, and a slot may have more bits than are stored.
fn hold_what_grows(section: &mut [u8], buckets: usize, growth: &Growth) {
    let (words, count) = section[15..].split_at_mut(8 * buckets);
    let level = buckets.ilog2() as usize;
    let mut copies = 0u64;
    for (nth, bytes) in words.chunks_exact_mut(8).enumerate() {
        let is_split = nth + (1 << level) < buckets || nth >= 1 << level;
        let [encoding, slots, stored_bits] = growth.layouts[level + usize::from(is_split)].map(u32::from);
        let mut word = number(bytes);
        let lane = if encoding == 0 { 64 / slots } else { [22, 17, 14, 12][slots as usize - 3] - 4 };
        if encoding == 0 {
            word &= u64::MAX >> (64 - slots * lane);
            for at in (0..slots).map(|slot| slot * lane) {
                word &= !(((1 << lane) - (1 << stored_bits)) << at);
                if word >> at & 0xff == 0 {
                    word &= !(((1 << lane) - 1) << at);
                }
            }
        }
        copies += (0..slots).filter(|slot| word >> (slot * lane) & ((1 << lane) - 1) != 0).count() as u64;
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    count.copy_from_slice(&copies.to_le_bytes());
}

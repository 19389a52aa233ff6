//! Snapshots with correct checksums, whatever is in them.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

/// The parts of a snapshot, in the order of the format (`docs/snapshot_format.md`). Each may be wrong.
#[derive(Clone, Default)]
pub struct Forged {
    pub magic: [u8; 8],
    pub version: u16,
    pub kind: u8,
    pub probe: u64,
    pub schema: Vec<u8>,
    pub flag: u8,
    pub position: u64,
    pub attached: u32,
    pub attachment: Vec<u8>,
    /// The fields before the table, if there are any.
    pub head: Vec<u8>,
    pub layout: [u8; 3],
    pub buckets: u64,
    pub words: Vec<u64>,
    pub count: u64,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Forged {
    /// The parts of a genuine snapshot.
    pub fn of(snapshot: &[u8]) -> Self {
        let mut rest = snapshot;
        let mut take = |len: usize| rest.split_off(..len).expect("it is genuine");
        let magic = take(8).try_into().expect("eight bytes");
        let (version, kind, probe) = (number(take(2)) as u16, take(1)[0], number(take(8)));
        let schema_len = take(1)[0].into();
        let schema = take(schema_len).to_vec();
        let (flag, position, attached) = (take(1)[0], number(take(8)), number(take(4)) as u32);
        take(4);
        let attachment = take(attached as usize).to_vec();
        take(4);
        let head = match kind {
            4 => take(1).to_vec(),
            5 => {
                let always = take(32);
                let evicts = always[17] & 2 > 0;
                [always, take(if evicts { 2 } else { 0 })].concat()
            }
            6 => take(27).to_vec(),
            7 => take(28).to_vec(),
            8 => take(32).to_vec(),
            _ => Vec::new(),
        };
        take(if head.is_empty() { 0 } else { 4 });
        let (layout, buckets) = (take(3).try_into().expect("three bytes"), number(take(8)));
        take(4);
        let words = (0..buckets).map(|_| number(take(8))).collect();
        let count = number(take(8));
        let label = Self { magic, version, kind, probe, schema, flag, position, ..Self::default() };
        Self { attached, attachment, head, layout, buckets, words, count, ..label }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut sum = crc32fast::Hasher::new();
        let mut bytes = Vec::new();
        let mut put = |part: &[&[u8]], seal: bool| {
            part.iter().for_each(|part| sum.update(part));
            bytes.extend(part.concat());
            if seal {
                bytes.extend(sum.clone().finalize().to_le_bytes());
            }
        };
        put(&[&self.magic, &self.version.to_le_bytes(), &[self.kind], &self.probe.to_le_bytes()], false);
        put(&[&[self.schema.len() as u8], &self.schema, &[self.flag], &self.position.to_le_bytes()], false);
        put(&[&self.attached.to_le_bytes()], true);
        put(&[&self.attachment], true);
        if !self.head.is_empty() {
            put(&[&self.head], true);
        }
        put(&[&self.layout, &self.buckets.to_le_bytes()], true);
        self.words.iter().for_each(|word| put(&[&word.to_le_bytes()], false));
        put(&[&self.count.to_le_bytes()], true);
        bytes
    }
}

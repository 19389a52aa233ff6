//! Which mutant is switched on: that whose number the environment variable `MUTANT` has. If `MUTANTS_REACHED` names a file,
//! none is, and the number of each mutant that is reached is appended to that.
#![allow(missing_docs)]

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const RECORDS: u32 = u32::MAX - 1;
const UNREAD: u32 = u32::MAX;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];

/// The mutant that is switched on. Those at this place have the numbers `here`.
#[inline(always)]
pub(crate) fn active(here: &[u32]) -> u32 {
    let active = ACTIVE.load(Ordering::Relaxed);
    if active >= RECORDS { read_or_record(here) } else { active }
}

/// Whether this mutant is switched on.
#[inline(always)]
pub(crate) fn is(here: u32) -> bool {
    active(&[here]) == here
}

#[cold]
#[inline(never)]
fn read_or_record(here: &[u32]) -> u32 {
    let Some(file) = std::env::var_os("MUTANTS_REACHED") else {
        let active = std::env::var("MUTANT").map_or(0, |number| number.parse().expect("a number"));
        ACTIVE.store(active, Ordering::Relaxed);
        return active;
    };
    ACTIVE.store(RECORDS, Ordering::Relaxed);
    for &number in here {
        if !REACHED[number as usize].swap(true, Ordering::Relaxed) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&file);
            writeln!(file.expect("the file can be written"), "{number}").expect("the file can be written");
        }
    }
    0
}

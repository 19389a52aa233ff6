use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;

use concurrent_cuckoo_filter::{AbsorbError, BuildError, Encoding, InsertError};

use crate::support::{MAPLET_LAYOUTS, Raw, build, hashes};
use crate::{expiring, filter, maplet};

#[derive(Debug, PartialEq)]
enum Failure {
    Build(BuildError),
    Insert(InsertError),
    Absorb(AbsorbError),
    File(usize),
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<InsertError> for Failure {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl From<AbsorbError> for Failure {
    fn from(error: AbsorbError) -> Self {
        Self::Absorb(error)
    }
}

#[test]
fn parts_come_to_the_whole_and_each_has_a_thread() {
    let [whole, direct] = [(); 2].map(|()| build(20_000, Encoding::SemiSorted, 0.001));
    let threads = Mutex::new(HashSet::new());
    hashes(0, whole.capacity()).for_each(|key| direct.insert(&key).unwrap());
    let share = whole.capacity().div_ceil(4);
    let added = whole.fill_in_parts(4, |nth, part| -> Result<(), Failure> {
        threads.lock().unwrap().insert(thread::current().id());
        let first = nth * share;
        hashes(first, share.min(whole.capacity() - first)).try_for_each(|key| part.insert(&key))?;
        Ok(())
    });
    assert_eq!(added, Ok(whole.capacity() as u64));
    assert_eq!(threads.into_inner().unwrap().len(), 4);
    assert_eq!(whole.digest().unwrap(), direct.digest().unwrap());
    assert_eq!(whole.len(), direct.len());
}

#[test]
fn what_was_in_stays_and_no_part_is_no_change() {
    let whole = maplet(100, MAPLET_LAYOUTS[2]);
    whole.insert(&Raw(1), 3).unwrap();
    assert_eq!(whole.fill_in_parts(0, |_, _| -> Result<(), Failure> { unreachable!("there is no part") }), Ok(0));
    let fill = |nth, part: &crate::Maplet| -> Result<(), Failure> { Ok(part.insert(&Raw(1), nth as u16)?) };
    assert_eq!(whole.fill_in_parts(3, fill), Ok(3));
    assert_eq!(whole.values(&Raw(1)).iter().collect::<Vec<_>>(), [0, 1, 2, 3]);

    let whole = expiring(100, 14);
    whole.advance_to(10);
    let fill = |_, part: &crate::Expiring| -> Result<(), Failure> { Ok(part.insert_until(&Raw(1), 20).map(drop)?) };
    assert_eq!(whole.fill_in_parts(2, fill), Ok(2), "parts have the tick of the whole");
    whole.advance_to(19);
    assert!(whole.contains(&Raw(1)));
    whole.advance_to(20);
    assert!(!whole.contains(&Raw(1)));
}

#[test]
fn if_one_part_fails_nothing_is_added() {
    let whole = filter();
    whole.insert(&Raw(1)).unwrap();
    let before = whole.digest().unwrap();
    let fill = |nth, part: &_| -> Result<(), Failure> {
        let part: &crate::support::Filter = part;
        part.insert(&Raw(nth as u64))?;
        if nth == 2 { Err(Failure::File(nth)) } else { Ok(()) }
    };
    assert_eq!(whole.fill_in_parts(4, fill), Err(Failure::File(2)));
    assert_eq!(whole.digest().unwrap(), before);
    // Each part fits, but all together do not.
    let share = whole.capacity() / 2;
    let fill = |nth, part: &_| -> Result<(), Failure> {
        let part: &crate::support::Filter = part;
        Ok(hashes(nth * 1000, share).try_for_each(|key| part.insert(&key))?)
    };
    let Err(Failure::Absorb(AbsorbError::TooMany { len, coming, capacity, .. })) = whole.fill_in_parts(3, fill) else {
        panic!("there is no room for all");
    };
    assert_eq!((len, coming, capacity), (1, 3 * share, whole.capacity()));
    assert_eq!(whole.digest().unwrap(), before);
}

/// One part has reached a later tick than the whole. This is found before any part is absorbed.
#[test]
fn a_part_ahead_of_the_whole_leaves_it_as_it_was() {
    let whole = expiring(100, 14);
    whole.advance_to(10);
    let fill = |nth, part: &crate::Expiring| -> Result<(), Failure> {
        part.insert_until(&Raw(nth as u64), 20)?;
        if nth == 1 {
            part.advance_to(11);
        }
        Ok(())
    };
    let Err(Failure::Absorb(AbsorbError::ClockBehind { ours: Some(10), theirs: 11, .. })) =
        whole.fill_in_parts(3, fill)
    else {
        panic!("the clock of the whole is behind");
    };
    assert!(whole.is_empty());
}

#[test]
#[should_panic(expected = "the file is gone")]
fn a_part_that_panics_panics_the_caller() {
    let _ = filter().fill_in_parts(2, |nth, _| -> Result<(), Failure> {
        assert!(nth == 0, "the file is gone");
        Ok(())
    });
}

#[test]
fn an_empty_one_is_like_the_whole() {
    let whole = build(12_345, Encoding::Plain, 0.01);
    whole.insert(&Raw(1)).unwrap();
    let empty = whole.empty_like().unwrap();
    assert!(empty.is_empty());
    assert_eq!((empty.slots(), empty.capacity()), (whole.slots(), whole.capacity()));
    assert_eq!(empty.memory_usage(), whole.memory_usage());
    assert!(whole.remove(&Raw(1)));
    assert_eq!(empty.digest().unwrap(), whole.digest().unwrap());

    let whole = expiring(100, 14);
    assert_eq!(whole.empty_like().unwrap().now(), None);
    whole.advance_to(1 << 50);
    let empty = whole.empty_like().unwrap();
    assert_eq!(empty.now(), Some(1 << 50));
    assert_eq!((empty.longest_lifetime(), empty.resolution()), (whole.longest_lifetime(), whole.resolution()));
}

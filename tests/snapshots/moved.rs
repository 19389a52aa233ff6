//! Saves that outlive their callers, that are read instead of written, and that say how long they are.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use concurrent_cuckoo_filter::{GrowableCuckooFilter, Tick};

use crate::filters::{builder, expiring_builder, maplet_builder, state};

/// The bytes that a reader gives, so many at a time.
fn read(mut reader: impl Read, at_a_time: usize) -> Vec<u8> {
    let (mut bytes, mut some) = (Vec::new(), vec![0; at_a_time]);
    loop {
        match reader.read(&mut some).unwrap() {
            0 => return bytes,
            len => bytes.extend_from_slice(&some[..len]),
        }
    }
}

/// `insert` and `remove` are for one key.
macro_rules! assert_moves {
    ($filter:expr, $insert:expr, $remove:expr) => {{
        // The attachment is longer than a piece, and not a multiple of it.
        let (filter, attachment) = (Arc::new($filter), vec![7; 20_000]);
        (0..5_000).for_each(|key| $insert(&*filter, key));
        let (mut written, save) = (Vec::new(), filter.begin_save().unwrap());
        let without = save.snapshot_len();
        let save = save.position(17).attachment(attachment.clone());
        let len = save.snapshot_len();
        save.write_to(&mut written).unwrap();
        assert_eq!((len, len - without), (written.len() as u64, 20_000));

        let begin =
            |at_a_time| (at_a_time, filter.begin_save_owned().unwrap().position(17).attachment(attachment.clone()));
        let saves = [1, 7, 8_192, 100_000].map(begin);
        // What comes after the moment is in none of them.
        (0..2_000).for_each(|key| $remove(&*filter, key));
        (5_000..9_000).for_each(|key| $insert(&*filter, key));
        let threads = saves.map(|(at_a_time, save)| {
            thread::spawn(move || {
                assert_eq!(save.snapshot_len(), len);
                read(save.into_reader().unwrap(), at_a_time)
            })
        });
        let is_there = Arc::downgrade(&filter);
        drop(filter);
        for thread in threads {
            assert!(thread.join().unwrap() == written);
        }
        assert!(is_there.upgrade().is_none(), "nobody has it any more");
    }};
}

#[test]
fn a_save_that_owns_its_filter_is_read_on_another_thread_as_it_was() {
    assert_moves!(
        builder().capacity(20_000).build().unwrap(),
        |filter: &crate::filters::Filter, key: u64| filter.insert(&key).unwrap(),
        |filter: &crate::filters::Filter, key: u64| assert!(filter.remove(&key))
    );
    assert_moves!(
        maplet_builder().capacity(20_000).value_bits(4).build().unwrap(),
        |maplet: &crate::filters::Maplet, key: u64| maplet.insert(&key, key as u16 % 16).unwrap(),
        |maplet: &crate::filters::Maplet, key: u64| assert!(maplet.remove(&key, key as u16 % 16))
    );
    let expiring = expiring_builder().capacity(20_000).lifetime_in_ticks(15).build().unwrap();
    expiring.advance_to(Tick::new(70));
    assert_moves!(
        expiring,
        |filter: &crate::filters::Expiring, key: u64| assert!(filter.insert_until(&key, Tick::new(80)).unwrap()),
        |filter: &crate::filters::Expiring, key: u64| assert!(filter.remove(&key))
    );
    // It grows while it is read.
    assert_moves!(
        GrowableCuckooFilter::<u64, _>::with_capacity_and_hasher(100, state()),
        |filter: &GrowableCuckooFilter<u64, _>, key: u64| filter.insert(&key).unwrap(),
        |filter: &GrowableCuckooFilter<u64, _>, key: u64| assert!(filter.remove(&key))
    );
}

#[test]
fn what_cannot_be_written_is_not_read_either() {
    let filter = builder().capacity(10).build().unwrap();
    let error = filter.begin_save().unwrap().attachment([0; 65_537]).into_reader().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("65537 bytes") && error.to_string().contains("65536"), "{error}");
}

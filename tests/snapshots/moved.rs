//! Saves that outlive their callers, that are read instead of written, and that say how long they are.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use concurrent_cuckoo_filter::Encoding;

use crate::filters::builder;
use crate::kinds::{self, NOW, Table};
use crate::support::{self, MAPLET_LAYOUTS, scattered};

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

fn is_moved<F: Table + Send + 'static>(filter: F, number: u64) {
    // The attachment is longer than a piece, and not a multiple of it.
    let (filter, attachment) = (Arc::new(filter), vec![7; 20_000]);
    let insert = |nth| assert_eq!(filter.insert(&(scattered(nth), number)), Ok(true));
    (0..5_000).for_each(insert);
    let (mut written, save) = (Vec::new(), filter.begin_save());
    let without = save.snapshot_len();
    let save = save.position(17).attachment(attachment.clone());
    let len = save.snapshot_len();
    save.write_to(&mut written).unwrap();
    assert_eq!((len, len - without), (written.len() as u64, 20_000));

    let begin = |at_a_time| (at_a_time, filter.begin_save_owned().position(17).attachment(attachment.clone()));
    let saves = [1, 7, 8_192, 100_000].map(begin);
    // What comes after the moment is in none of them.
    (0..2_000).for_each(|nth| assert!(filter.remove(&(scattered(nth), number))));
    (5_000..9_000).for_each(insert);
    let threads = saves.map(|(at_a_time, save)| {
        thread::spawn(move || {
            assert_eq!(save.snapshot_len(), len);
            read(save.into_reader().unwrap(), at_a_time)
        })
    });
    let is_there = Arc::downgrade(&filter);
    drop(filter);
    threads.into_iter().for_each(|thread| assert!(thread.join().unwrap() == written));
    assert!(is_there.upgrade().is_none(), "nobody has it any more");
}

#[test]
fn a_save_that_owns_its_filter_is_read_on_another_thread_as_it_was() {
    is_moved(support::build(20_000, Encoding::SemiSorted, 0.001), 0);
    is_moved(kinds::maplet(20_000, MAPLET_LAYOUTS[2]), 5);
    is_moved(kinds::expiring(20_000, MAPLET_LAYOUTS[2]), NOW + 10);
    // It grows while it is read.
    is_moved(kinds::growable(100, 0.001), 0);
}

#[test]
fn what_cannot_be_written_is_not_read_either() {
    let filter = builder().capacity(10).build().unwrap();
    let error = filter.begin_save().unwrap().attachment([0; 65_537]).into_reader().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("65537 bytes") && error.to_string().contains("65536"), "{error}");
}

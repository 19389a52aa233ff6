//! What a `fork` copies: children draw other keys than their parent and than each other, and their saves do not disturb
//! each other.

#![cfg(all(unix, not(miri)))]
#![allow(unsafe_code, reason = "the standard library has no fork")]

use std::fs::File;
use std::hash::BuildHasher;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder};

/// Runs `work` in a child, and returns what that has answered.
fn in_child(work: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child runs `work` on its only thread, and needs no lock that another thread of this test has: the
    // allocator releases its own.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: nothing else owns this end in the child.
        let mut to = unsafe { File::from_raw_fd(ends[1]) };
        let written = to.write_all(&work()).is_ok();
        // SAFETY: it ends the child at once, without the handlers that the parent will run.
        unsafe { libc::_exit(i32::from(!written)) };
    }
    assert!(child > 0, "no child");
    // SAFETY: it is open, and nothing else uses it in the parent.
    unsafe { libc::close(ends[1]) };
    let mut answer = Vec::new();
    // SAFETY: nothing else owns this end in the parent.
    unsafe { File::from_raw_fd(ends[0]) }.read_to_end(&mut answer).expect("the child closes its end");
    let mut status = 0;
    // SAFETY: it is a child of this process, and there is room for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    answer
}

/// What hashers that are drawn now make of a key.
fn hashes() -> Vec<u8> {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(10);
    [filter.hasher().hash_one(1u64), DefaultHashBuilder::new().hash_one(1u64)].map(u64::to_le_bytes).concat()
}

/// The parent has drawn before, so each child has a copy of the keys from which others are drawn.
#[test]
fn children_draw_keys_of_their_own() {
    let before = hashes();
    let (first, second) = (in_child(hashes), in_child(hashes));
    let after = hashes();
    let mut all: Vec<&[u8]> =
        [&before, &first, &second, &after].into_iter().flat_map(|of_one| of_one.chunks(8)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8, "some are the same: {before:x?} {first:x?} {second:x?} {after:x?}");
}

/// A filter that was made before has the same keys in the child, so it finds the same there.
#[test]
fn a_filter_that_was_made_before_is_the_same_in_the_child() {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(100);
    (0..100).for_each(|key| filter.insert(&key).expect("there is room"));
    assert_eq!(in_child(|| vec![(0..100).filter(|key| filter.contains(key)).count() as u8]), [100]);
}

/// The saves of children to one path, each of which finds what a child that has died has left behind.
#[cfg(feature = "snapshot")]
#[test]
fn saves_of_children_to_one_path_do_not_disturb_each_other() {
    use concurrent_cuckoo_filter::SnapshotInfo;

    // The parent has drawn before.
    drop(hashes());
    let folder = std::env::temp_dir().join(format!("ccf-forks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a folder for such files");
    let path = folder.join("snapshot");
    let save = || ConcurrentCuckooFilter::<u64>::with_capacity(100_000).save_to_path(&path).is_ok();
    // This child dies in the middle of its save: its files may not be longer than this.
    in_child(|| {
        let limit = libc::rlimit { rlim_cur: 8192, rlim_max: 8192 };
        // SAFETY: it only reads the struct.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        vec![u8::from(save())]
    });
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1, "it has left its partial file");
    assert_eq!(in_child(|| vec![u8::from(save())]), [1], "the next child could not save");
    // Two children at a time, of which neither waits for the other.
    for _ in 0..10 {
        let children: Vec<_> = (0..2)
            .map(|_| {
                // SAFETY: as in `in_child`.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: as in `in_child`.
                    unsafe { libc::_exit(i32::from(!save())) };
                }
                child
            })
            .collect();
        for child in children {
            let mut status = 0;
            // SAFETY: as in `in_child`.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "a save has failed");
        }
        SnapshotInfo::verify(File::open(&path).expect("it was saved")).expect("it is one whole snapshot");
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
}

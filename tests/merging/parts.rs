use concurrent_cuckoo_filter::{Encoding, Tick};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use crate::support::{MAPLET_LAYOUTS, Raw, build, hashes};
use crate::{expiring, maplet};

/// As the page `beyond_one_process` shows it. The pool has one thread, and what fills a part uses the pool too: nothing
/// here waits for a thread that the pool does not have.
#[test]
fn parts_that_a_pool_fills_are_added_exactly() {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let [whole, direct] = [(); 2].map(|()| build(20_000, Encoding::SemiSorted, 0.001));
    let keys: Vec<Raw> = hashes(0, whole.capacity()).collect();
    keys.iter().for_each(|key| direct.insert(key).unwrap());
    pool.install(|| {
        let fill = |keys: &[Raw]| {
            let part = whole.empty_like().unwrap();
            keys.par_iter().for_each(|key| part.insert(key).unwrap());
            part
        };
        let parts: Vec<_> = keys.par_chunks(keys.len().div_ceil(4)).map(fill).collect();
        assert!(whole.is_empty(), "nothing is in before it is absorbed");
        let added: u64 = parts.par_iter().map(|part| whole.absorb(part).unwrap()).sum();
        assert_eq!(added, keys.len() as u64);
    });
    assert_eq!(whole.digest().unwrap(), direct.digest().unwrap());
    assert_eq!(whole.len(), direct.len());
}

/// Several threads add parts to one filter at the same time.
#[test]
fn parts_that_are_absorbed_at_once_are_each_in_once() {
    let whole = maplet(4000, MAPLET_LAYOUTS[2]);
    whole.insert(&Raw(1), 15).unwrap();
    let parts = [(); 4].map(|()| whole.empty_like().unwrap());
    for (nth, part) in parts.iter().enumerate() {
        part.insert(&Raw(1), nth as u16).unwrap();
        hashes(1000 * nth, 800).for_each(|key| part.insert(&key, nth as u16).unwrap());
    }
    std::thread::scope(|scope| {
        parts.iter().for_each(|part| _ = scope.spawn(|| assert_eq!(whole.absorb(part), Ok(801))));
    });
    assert_eq!(whole.values(&Raw(1)).iter().collect::<Vec<_>>(), [0, 1, 2, 3, 15]);
    for nth in 0..4 {
        assert!(hashes(1000 * nth, 800).all(|key| whole.remove(&key, nth as u16)));
    }
    assert_eq!(whole.len(), 5);
}

#[test]
fn an_empty_one_is_like_the_whole() {
    let whole = build(12_345, Encoding::Plain, 0.01);
    whole.insert(&Raw(1)).unwrap();
    let empty = whole.empty_like().unwrap();
    assert!(empty.is_empty());
    assert_eq!((empty.plan().slots, empty.capacity()), (whole.plan().slots, whole.capacity()));
    assert_eq!(empty.stats().memory_usage, whole.stats().memory_usage);
    assert!(whole.remove(&Raw(1)));
    assert_eq!(empty.digest().unwrap(), whole.digest().unwrap());

    let whole = expiring(100, 14);
    assert_eq!(whole.empty_like().unwrap().now(), None);
    whole.advance_to(Tick::new(1 << 50));
    let empty = whole.empty_like().unwrap();
    assert_eq!(empty.now(), Some(Tick::new(1 << 50)));
    assert_eq!(
        (empty.plan().lifetime_in_ticks.unwrap(), empty.plan().resolution),
        (whole.plan().lifetime_in_ticks.unwrap(), whole.plan().resolution)
    );
}

//! Snapshots of filters that grow and shrink. (`views` saves, views and loads them at many sizes.)

use crate::filters::{Growable, load, load_within, saved, small_growable, state};

fn growable(capacity: usize, rate: f64) -> Growable {
    let builder = Growable::builder_with_hasher(state()).capacity(capacity);
    builder.false_positive_rate(rate).build().unwrap()
}

#[test]
fn the_memory_limit_of_loading_is_that_of_the_filter_from_now_on() {
    let filter = small_growable();
    let (bytes, needed) = (saved(&filter), filter.stats().memory_usage);
    let loaded = load_within::<Growable>(&bytes, needed).unwrap();
    let refused = (0..10_000).map(|key| loaded.insert(&key)).find_map(Result::err).unwrap().to_string();
    assert!(refused.contains(&needed.to_string()), "{refused}");
    // A smaller table needs no more memory.
    let loaded = load_within::<Growable>(&bytes, needed).unwrap();
    (10..loaded.len() as u64).for_each(|key| assert!(loaded.remove(&key)));
    loaded.shrink_to_fit();
    assert!(loaded.capacity() < filter.capacity() / 2 && loaded.stats().memory_usage <= needed);
    assert!((0..10).all(|key| loaded.contains(&key)) && loaded.len() == 10);
}

/// A loaded filter goes on to grow as its builder said.
#[test]
fn a_snapshot_has_the_load_while_growing() {
    for load in [0.70, 0.85, 0.95] {
        let builder = Growable::builder_with_hasher(state()).capacity(100).load_while_growing(load);
        let filter = builder.clone().build().unwrap();
        let loaded = load_within::<Growable>(&saved(&filter), usize::MAX).unwrap();
        assert_eq!(loaded.plan().load_while_growing, Some(load));
        for filter in [&filter, &loaded] {
            (0..20_000).for_each(|key| filter.insert(&key).unwrap());
        }
        assert_eq!((loaded.capacity(), saved(&loaded)), (filter.capacity(), saved(&filter)));
    }
}

/// Each key of a batch is an insert of its own, in order, whatever is prefetched for those to come. So the same buckets have
/// the same words, also in a table that is too large for the cache.
#[test]
#[cfg_attr(miri, ignore = "needs many keys")]
fn a_batch_is_its_inserts_one_by_one() {
    for load in [0.70, 0.95] {
        let filters = [0, 1].map(|_| {
            let builder = Growable::builder_with_hasher(state()).capacity(0).expected_keys(400_000);
            builder.load_while_growing(load).build().unwrap()
        });
        let [one_by_one, batched] = &filters;
        let mut keys = 0..400_000u64;
        for len in [0, 1, 31, 32, 33, 95, 96, 97, 1000].into_iter().cycle() {
            let batch: Vec<u64> = keys.by_ref().take(len).collect();
            batch.iter().for_each(|key| one_by_one.insert(key).unwrap());
            batched.insert_batch(&batch).unwrap();
            if keys.is_empty() {
                break;
            }
        }
        assert!(batched.plan().layout.buckets > 1 << 16, "{batched:?}");
        assert_eq!(saved(batched), saved(one_by_one));
        assert_eq!(batched.stats().relocations, one_by_one.stats().relocations);
    }
}

/// A save that began is what the filter was then, whatever it has become when the snapshot is written.
#[test]
fn a_save_is_of_the_moment_at_which_it_began_however_the_filter_grows_and_shrinks() {
    let end = 3_000;
    for rate in [0.1, 0.001] {
        let filter = growable(100, rate);
        (0..end).for_each(|key| filter.insert(&key).unwrap());
        let at_once = saved(&filter);
        // Grown when it is written; shrunk; grown and then shrunk; shrunk and then grown, by other keys.
        for (grows, shrinks, grows_again) in
            [(true, false, false), (false, true, false), (true, true, false), (false, true, true)]
        {
            let filter = load::<Growable>(&at_once).unwrap();
            let save = filter.begin_save().unwrap();
            if grows {
                (end..20 * end).for_each(|key| filter.insert(&key).unwrap());
            }
            if shrinks {
                (50..filter.len() as u64).for_each(|key| assert!(filter.remove(&key)));
                filter.shrink_to_fit();
                assert!(filter.capacity() < 1_000, "{filter:?}");
            }
            if grows_again {
                (end..3 * end).for_each(|key| filter.insert(&key).unwrap());
            }
            let mut later = Vec::new();
            save.write_to(&mut later).unwrap();
            assert_eq!(later, at_once, "grows: {grows}, shrinks: {shrinks}, grows again: {grows_again}");
            assert!((0..50).all(|key| filter.contains(&key)));
        }
        let loaded = load::<Growable>(&at_once).unwrap();
        assert!((0..end).all(|key| loaded.remove(&key)) && loaded.is_empty());
    }
}

/// A save that is running may still read the memory. So that stays, and counts, until a shrink after it.
#[test]
fn while_a_save_runs_a_shrink_gives_no_memory_back() {
    let filter = growable(1_000, 0.001);
    let held = || filter.stats().memory_usage;
    let mut keys = 0..;
    keys.by_ref().take(20_000).for_each(|key| filter.insert(&key).unwrap());
    // Until an insert has just taken more.
    let before = held();
    while held() == before {
        filter.insert(&keys.next().unwrap()).unwrap();
    }
    let (most, save) = (held(), filter.begin_save().unwrap());
    (0..keys.start).for_each(|key| assert!(filter.remove(&key)));
    filter.shrink_to_fit();
    assert!(filter.capacity() < 2_000, "{filter:?}");
    assert_eq!(held(), most, "a save is running: {filter:?}");
    drop(save);
    filter.shrink_to_fit();
    assert!(held() < most / 2 || !cfg!(target_os = "linux"), "{} of {most}: {filter:?}", held());
}

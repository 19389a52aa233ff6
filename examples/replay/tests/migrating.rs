//! The guide's page `migrating`, *A cache or a map of seen keys*: what it replaces and what replaces that, as the page shows
//! both, give the same answers; and what goes wrong with the other insert.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use concurrent_cuckoo_filter::RecentCuckooFilter;
use lru::LruCache;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

mod lru_cache {
    use super::*;

    pub(crate) mod before {
        use super::*;

        pub(crate) fn is_new(seen: &Mutex<LruCache<String, ()>>, id: &str) -> bool {
            seen.lock().unwrap().put(id.to_owned(), ()).is_none()
        }
    }

    pub(crate) mod after {
        use super::*;

        pub(crate) fn is_new(seen: &RecentCuckooFilter<str>, id: &str) -> bool {
            seen.insert_or_renew(id)
        }
    }
}

mod map_of_times {
    use super::*;

    pub(crate) mod before {
        use std::time::Instant;

        use dashmap::{DashMap, Entry};

        use super::*;

        pub(crate) fn is_new(seen: &DashMap<String, Instant>, id: &str, window: Duration) -> bool {
            let now = Instant::now();
            match seen.entry(id.to_owned()) {
                Entry::Occupied(entry) if now.duration_since(*entry.get()) < window => false,
                Entry::Occupied(mut entry) => {
                    entry.insert(now);
                    true
                }
                Entry::Vacant(entry) => {
                    entry.insert(now);
                    true
                }
            }
        }

        pub(crate) fn remove_old(seen: &DashMap<String, Instant>, window: Duration) {
            seen.retain(|_, came| came.elapsed() < window);
        }
    }

    pub(crate) mod after {
        use super::*;

        pub(crate) fn is_new(seen: &RecentCuckooFilter<str>, id: &str) -> bool {
            seen.insert(id)
        }
    }
}

mod moka_cache {
    pub(crate) mod before {
        use moka::sync::Cache;

        pub(crate) fn is_new(seen: &Cache<String, ()>, id: &str) -> bool {
            seen.entry_by_ref(id).or_insert(()).is_fresh()
        }
    }
}

/// So long that nothing leaves while a test runs.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// A filter that takes hardly any new key for another. (Its hasher is random, so which ones is another matter in each run. A
/// test that asks for many keys tolerates one, and less than one run in a billion has two.)
fn exact(builder: concurrent_cuckoo_filter::RecentBuilder<str>) -> RecentCuckooFilter<str> {
    builder.false_positive_rate(4e-8).build().unwrap()
}

/// Keys of which some come again.
fn ids(count: usize, distinct: u32) -> impl Iterator<Item = String> {
    let mut random = SmallRng::seed_from_u64(1);
    (0..count).map(move |_| format!("message-{}", random.random_range(0..distinct)))
}

#[test]
fn the_page_shows_this_code() {
    let without_indent = |text: &str| text.lines().map(|line| line.trim_start().to_string() + "\n").collect::<String>();
    let source = without_indent(&include_str!("migrating.rs").replace("pub(crate) ", ""));
    let page = include_str!("../../../src/guide/migrating.md");
    let (_, section) = page.split_once("# A cache or a map of seen keys").expect("the page has this heading");
    let blocks: Vec<_> = section.split("```rust,ignore\n").skip(1).collect();
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        for part in block.split("```").next().unwrap().split("\n\n") {
            assert!(source.contains(&without_indent(part.trim_end())), "the page shows other code:\n{part}");
        }
    }
}

#[test]
fn a_filter_of_the_last_keys_answers_as_an_lru_cache() {
    // As long as fewer keys come than it holds at least: each is renewed in up to 13 groups, and counts as often.
    let cache = Mutex::new(LruCache::new(NonZeroUsize::new(1000).unwrap()));
    let filter = exact(RecentCuckooFilter::builder().last(1000));
    let differ = |id: &String| lru_cache::after::is_new(&filter, id) != lru_cache::before::is_new(&cache, id);
    assert!(ids(10_000, 70).filter(differ).count() <= 1);
}

/// The mistake: to take `n` for the number of distinct keys if most keys come again.
#[test]
fn keys_that_are_renewed_count_several_times() {
    let filter = exact(RecentCuckooFilter::builder().last(1000));
    let new = ids(10_000, 900).filter(|id| lru_cache::after::is_new(&filter, id)).count();
    assert!(new > 2 * 900, "{new}: so the page asks for a larger `n`");
}

#[test]
fn a_key_that_comes_all_the_time_stays_only_if_it_is_renewed() {
    let cache = Mutex::new(LruCache::new(NonZeroUsize::new(20).unwrap()));
    let [renewed, not_renewed] = [(); 2].map(|()| exact(RecentCuckooFilter::builder().last(20)));
    let (mut lost, mut differences) = (false, 0);
    for number in 0..200 {
        let id = format!("message-{number}");
        assert!(lru_cache::before::is_new(&cache, &id));
        differences += usize::from(!lru_cache::after::is_new(&renewed, &id));
        not_renewed.insert(&id);
        let is_first = number == 0;
        assert_eq!(lru_cache::before::is_new(&cache, "often"), is_first);
        differences += usize::from(lru_cache::after::is_new(&renewed, "often") != is_first);
        lost |= not_renewed.insert("often") && !is_first;
    }
    assert!(differences <= 1);
    assert!(lost, "so the page says which insert to use");
}

#[test]
fn a_filter_of_a_time_answers_as_a_map_of_times_and_as_moka() {
    let (map, cache) = (dashmap::DashMap::new(), moka::sync::Cache::builder().time_to_live(LONG).build());
    let filter = exact(RecentCuckooFilter::builder().within(LONG, 10_000));
    let (mut seen, mut differences) = (HashSet::new(), 0);
    for id in ids(2000, 1000) {
        let is_new = seen.insert(id.clone());
        assert_eq!(map_of_times::before::is_new(&map, &id, LONG), is_new);
        assert_eq!(moka_cache::before::is_new(&cache, &id), is_new);
        differences += usize::from(map_of_times::after::is_new(&filter, &id) != is_new);
    }
    assert!(differences <= 1);
    map_of_times::before::remove_old(&map, LONG);
    assert_eq!(map.len(), seen.len(), "nothing is old yet");
    map_of_times::before::remove_old(&map, Duration::ZERO);
    assert!(map.is_empty());
}

/// In the map, a key is new again when the window is over, however often it came meanwhile.
#[test]
fn a_key_that_is_renewed_would_never_be_new_again() {
    let seconds = Arc::new(AtomicU64::new(0));
    let filter = || {
        let clock = Arc::clone(&seconds);
        let clock = move || Duration::from_secs(clock.load(Ordering::Relaxed));
        exact(RecentCuckooFilter::builder().within(Duration::from_secs(60), 100).clock(clock))
    };
    let (filter, renewed) = (filter(), filter());
    let mut answers = Vec::new();
    for second in [0, 40, 80] {
        seconds.store(second, Ordering::Relaxed);
        answers.push((map_of_times::after::is_new(&filter, "often"), renewed.insert_or_renew("often")));
    }
    assert_eq!(answers, [(true, true), (false, false), (true, false)]);
}

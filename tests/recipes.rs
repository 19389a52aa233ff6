//! The programs of the guide's page `recipes`: each keeps what it promises, and loses it where its advice is not followed.

#[path = "../examples/at_the_limit.rs"]
#[cfg(all(feature = "snapshot", feature = "stable-hash"))]
#[expect(dead_code, reason = "its `main`")]
mod at_the_limit;
#[path = "../examples/rehash.rs"]
#[expect(dead_code, reason = "its `main`")]
mod rehash;
#[path = "../examples/replace.rs"]
#[expect(dead_code, reason = "its `main`")]
mod replace;

/// The page shows these programs, with all items private, and may leave some out.
#[test]
fn the_code_on_the_page_is_that_of_the_programs() {
    let page = include_str!("../src/guide/recipes.md");
    let programs = [
        include_str!("../examples/replace.rs"),
        include_str!("../examples/rehash.rs"),
        include_str!("../examples/at_the_limit.rs"),
    ];
    let blocks: Vec<_> = page.split("```rust\n").skip(1).map(|from| from.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), programs.len());
    for (block, program) in blocks.iter().zip(programs) {
        let program = program.replace("pub(crate) ", "");
        for part in block.split("\n\n").filter(|part| !part.starts_with("use ")) {
            // A method that the page has first need not be the first of the program.
            let part = if part.starts_with("impl ") { part.split_once('\n').unwrap().1 } else { part };
            assert!(program.contains(part.trim_end().trim_end_matches('}').trim_end()), "the program lacks:\n{part}");
        }
    }
}

mod too_small {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick, WhenFull};

    use crate::replace::{Revoked, Shared, filter, revoke};

    fn time(minutes: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_699_963_200 + 60 * minutes)
    }

    fn tick(revoked: &Revoked, minute: u64) -> Tick {
        revoked.current.tick_at(time(minute)).unwrap()
    }

    /// A thousand tokens in a filter for a hundred: it is replaced several times.
    fn with_tokens() -> (Shared, Vec<String>) {
        let revoked = Shared::new(Revoked::new(filter(100).unwrap()));
        let now = tick(&revoked.read().unwrap(), 0);
        revoked.read().unwrap().advance_to(now);
        let tokens: Vec<_> = (0..1000).map(|number| format!("token {number}")).collect();
        std::thread::scope(|threads| {
            for part in tokens.chunks(250) {
                threads.spawn(|| part.iter().for_each(|token| _ = revoke(&revoked, token, time(60)).unwrap()));
            }
        });
        (revoked, tokens)
    }

    #[test]
    fn a_filter_that_is_replaced_loses_no_token_and_goes_when_its_last_one_has_expired() {
        let (revoked, tokens) = with_tokens();
        let mut revoked = revoked.into_inner().unwrap();
        assert!(!revoked.old.is_empty() && revoked.current.capacity() >= 400);
        for minute in 0..60 {
            let now = tick(&revoked, minute);
            assert!(!revoked.advance_to(now), "no filter may go before its last token has expired");
            revoked.drop_old(now);
            assert!(tokens.iter().all(|token| revoked.contains(token)), "minute {minute}");
        }
        // The longest lifetime is rounded up, to a tick more than an hour.
        let now = tick(&revoked, 70);
        assert!(revoked.advance_to(now));
        revoked.drop_old(now);
        assert!(revoked.old.is_empty() && revoked.current.live_len() == 0);
    }

    #[test]
    fn an_old_filter_that_is_dropped_too_early_loses_tokens() {
        let (revoked, tokens) = with_tokens();
        let mut revoked = revoked.into_inner().unwrap();
        revoked.drop_old(tick(&revoked, 24 * 60));
        assert!(!tokens.iter().all(|token| revoked.contains(token)), "so the page warns of it");
    }

    #[test]
    fn a_new_filter_without_a_time_would_take_no_tokens() {
        let (now, mut revoked) = (time(0), Revoked::new(filter(100).unwrap()));
        assert!(filter(100).unwrap().insert_until("token", now).is_err());
        revoked.advance_to(tick(&revoked, 0));
        revoked.replace(filter(100).unwrap());
        assert!(revoked.revoke("token", time(60)).unwrap());
    }

    #[test]
    fn the_capacity_that_the_statistics_ask_for_is_enough() {
        let hour = Duration::from_secs(3600);
        let build = |capacity| {
            let builder = ExpiringCuckooFilter::<str>::builder().capacity(capacity).false_positive_rate(1e-5);
            let builder = builder.lifetime(hour).resolution(hour / 12).when_full(WhenFull::EvictSoonest);
            let mut revoked = Revoked::new(builder.build().unwrap());
            // A hundred tokens in each minute, for three hours. Each expires after an hour.
            let mut before = revoked.current.stats();
            for minute in 0..180 {
                let now = tick(&revoked, minute);
                revoked.advance_to(now);
                if minute == 120 {
                    before = revoked.current.stats();
                }
                for number in 0..100 {
                    revoked.revoke(&format!("token {minute} {number}"), time(minute + 60)).unwrap();
                }
            }
            revoked.drop_old(tick(&revoked, 0));
            let early = revoked.current.stats().expiry.unwrap().evicted_early_by;
            (revoked.capacity_needed(&before), early)
        };
        let (needed, early) = build(3000);
        assert!(early > 0, "the first one is too small");
        let (_, early) = build(needed);
        assert_eq!(early, 0, "a capacity of {needed} is too small");
        assert!(needed < 14_000, "{needed} is more than twice what 7,000 tokens need");
    }
}

mod new_key {
    use std::sync::Arc;
    use std::thread;

    use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

    use crate::rehash::Users;

    fn with_names(count: usize) -> Users {
        let users = Users::with_capacity(2 * count);
        (0..count).for_each(|number| assert!(users.add(&format!("user {number}")).unwrap()));
        users
    }

    #[test]
    fn no_name_is_missing_while_the_key_changes_and_false_positives_go() {
        let users = with_names(20_000);
        let absent = (0..300_000).map(|number| format!("absent {number}"));
        let collected: Vec<_> = absent.filter(|name| users.filter.read().unwrap().contains(name)).collect();
        thread::scope(|threads| {
            let writer = threads.spawn(|| {
                for number in 20_000..30_000 {
                    let name = format!("user {number}");
                    users.add(&name).unwrap();
                    assert!(users.contains(&name) && users.contains("user 17"));
                    if number % 2 == 1 {
                        assert!(users.remove(&name));
                    }
                }
            });
            while !writer.is_finished() {
                users.rehash().unwrap();
            }
        });
        let (names, filter) = (users.names.lock().unwrap(), users.filter.read().unwrap());
        assert!(names.iter().all(|name| filter.contains(name.as_str())));
        assert_eq!(filter.len(), names.len(), "each name has one copy");
        let left = collected.iter().filter(|name| filter.contains(name.as_str())).count();
        assert!(collected.len() > 50 && left < collected.len() / 5, "{left} of {}", collected.len());
    }

    #[test]
    fn a_scan_without_the_lock_loses_a_name() {
        let users = with_names(100);
        let names = users.names.lock().unwrap().clone(); // the scan, after which the lock is free
        users.add("a late one").unwrap();
        let filter = ConcurrentCuckooFilter::with_capacity(1000);
        names.iter().for_each(|name| filter.insert(name.as_str()).unwrap());
        *users.filter.write().unwrap() = Arc::new(filter);
        assert!(!users.contains("a late one"), "so the page asks for the lock");
    }
}

#[cfg(all(feature = "snapshot", feature = "stable-hash"))]
mod full {
    use std::thread;

    use crate::at_the_limit::{Disk, Seen, install};

    const LIMIT: usize = 60_000;

    /// Full, with the keys that several threads have added.
    fn full() -> Seen {
        let seen = Seen::open(install().unwrap(), LIMIT).unwrap();
        thread::scope(|threads| {
            for thread in 0..4 {
                let seen = &seen;
                threads.spawn(move || (0..).all(|number| seen.insert(&format!("{thread} {number}")).is_ok()));
            }
        });
        seen
    }

    fn has_all(seen: &Seen, keys: &[String]) -> bool {
        keys.iter().all(|key| seen.filter().contains(key.as_str()))
    }

    #[test]
    fn a_full_filter_restarts_in_any_order_and_gets_room() {
        let disk = full().disk.into_inner().unwrap();
        let (keys, mut log) = (disk.log.clone(), disk.log.clone());
        log.reverse();
        let seen = Seen::open(Disk { log, ..disk }, LIMIT).unwrap();
        assert!(has_all(&seen, &keys) && seen.insert("one more").is_err());

        seen.raise_limit(2 * LIMIT).unwrap();
        assert!(has_all(&seen, &keys) && seen.insert("one more").unwrap());
        let disk = seen.disk.into_inner().unwrap();
        assert_eq!(disk.log, ["one more"], "the others are in the snapshot");
        let seen = Seen::open(disk, 2 * LIMIT).unwrap();
        assert!(has_all(&seen, &keys) && seen.filter().contains("one more"));
    }

    #[test]
    fn a_log_of_what_was_not_accepted_cannot_be_replayed() {
        let mut disk = full().disk.into_inner().unwrap();
        disk.log.push("refused, but written first".to_string());
        assert!(Seen::open(disk, LIMIT).is_err(), "so the page says which comes first");
    }

    #[test]
    fn a_lower_limit_after_the_restart_fails() {
        let disk = full().disk.into_inner().unwrap();
        assert!(Seen::open(disk, LIMIT / 2).is_err());
    }
}

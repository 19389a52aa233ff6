//! hoprnet's tag filter.

use replay::adopters::hoprnet::{RecentTags, TagFilter};

use crate::{RATE, keys};

const ZEROS: [u8; 16] = [0; 16];
const ONES: [u8; 16] = [1; 16];

#[test]
fn a_tag_is_counted_once() {
    let filter = RecentTags::new(10_000, RATE).unwrap();
    assert!(!filter.check_and_set(&ZEROS) && filter.check_and_set(&ZEROS));
    assert_eq!(filter.count(), 1);
    assert!(!filter.check_and_set(&ONES) && filter.check_and_set(&ZEROS));
    assert_eq!(filter.count(), 2);
}

/// In hoprnet's own test, the tag after the last that has room clears the filter.
#[test]
fn a_filter_that_is_full_forgets_none_of_the_last_tags() {
    const CAPACITY: usize = 1000;
    let filter = RecentTags::new(CAPACITY, RATE).unwrap();
    let mut new = Vec::new();
    for tag in keys(10 * CAPACITY, 1) {
        if !filter.check_and_set(&tag) {
            new.push(tag);
        }
        let last = &new[new.len().saturating_sub(CAPACITY)..];
        // Each tag is looked for when it is the newest, the oldest, and in the middle.
        for tag in [&last[0], &last[last.len() / 2], &last[last.len() - 1]] {
            assert!(filter.check(tag), "{}", new.len());
        }
    }
    assert!(new.len() > 10 * CAPACITY - 3, "{}", new.len());
    assert_eq!(filter.count(), new.len());
    assert!(new[new.len() - CAPACITY..].iter().all(|tag| filter.check_and_set(tag)), "replays");
    let known = new.iter().filter(|tag| filter.check(tag)).count();
    assert!((CAPACITY..CAPACITY + CAPACITY / 7).contains(&known), "{known}: the oldest leave");
}

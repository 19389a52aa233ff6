use core::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// The largest page of any system that Linux runs on.
const LARGEST_PAGE: usize = 64 << 10;

const WORD: usize = size_of::<AtomicU64>();

/// The standard library's number may be less: it reads limits of the time too.
#[test]
fn there_are_as_many_processors_as_threads_can_use() {
    let usable = std::thread::available_parallelism().expect("a number").get();
    assert!((usable..1 << 20).contains(&processors()), "{} of {usable}", processors());
}

/// Gives back parts of a list by pages of this size: one or two pages, from each boundary of a page on. Returns the first
/// thing that is wrong: an element outside of the part has changed, or one within has not.
///
/// Where the system's pages are larger, one of these parts begins with a page of the system and ends within it. What is
/// wrong then is in this list, and in nobody else's memory.
fn what_is_wrong(page: usize) -> Option<String> {
    let list = zeroed(4 * LARGEST_PAGE / WORD).expect("memory");
    let first = list.as_ptr().addr().wrapping_neg() % LARGEST_PAGE / WORD;
    for start in (first..first + LARGEST_PAGE / WORD).step_by(page / WORD) {
        // Not all of the second part is whole pages, at either end.
        for part in [start..start + page / WORD, start - first.min(1)..start + 2 * page / WORD + 1] {
            list.iter().for_each(|word| word.store(1, Ordering::Relaxed));
            // SAFETY: if the page is too small, the system rounds up to the end of the page of its own in which the part
            // ends. That page is in the list too, which has a larger one behind the last part.
            unsafe { release_pages(&list[part.clone()], page) };
            let given_back = start..start + (part.end - start) * WORD / page * page / WORD;
            for (at, word) in list.iter().enumerate() {
                let (word, expected) = (word.load(Ordering::Relaxed), u64::from(!given_back.contains(&at)));
                if word != expected {
                    return Some(format!("{word} at {at}, and not {expected}: {part:?} of it was given back"));
                }
            }
        }
    }
    None
}

#[test]
fn only_what_is_in_the_list_is_given_back() {
    let page = page_size().expect("Linux says what its page size is");
    // `ci/targets` says what it is to be where it runs the tests with other pages.
    if let Ok(expected) = std::env::var("CCF_PAGE_SIZE") {
        assert_eq!(page.to_string(), expected, "the page size of the system");
    }
    assert_eq!(what_is_wrong(page), None, "by pages of {page} bytes");
}

/// The control of the test above: it notices a page size that is too small.
#[test]
fn a_page_size_that_is_too_small_is_noticed() {
    assert_ne!(what_is_wrong(512), None);
}

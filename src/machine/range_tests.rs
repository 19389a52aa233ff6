use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

use super::reserved::{MOST_BYTES, MOST_RANGES};
use super::*;

/// How many bytes of the memory from this word on are resident. A page of zeros that processes share is not.
fn resident(first: *mut AtomicU64, words: usize) -> usize {
    const PRESENT_AND_NOT_SHARED: u64 = 1 << 63 | 1 << 56;
    let pages = File::open("/proc/self/pagemap").expect("Linux has it");
    let page = page() * size_of::<u64>();
    let is_resident = |nth: &usize| {
        let mut entry = [0; 8];
        pages.read_exact_at(&mut entry, ((first.addr() / page + nth) * 8) as u64).expect("it has all pages");
        u64::from_le_bytes(entry) & PRESENT_AND_NOT_SHARED == PRESENT_AND_NOT_SHARED
    };
    (0..words * size_of::<u64>() / page).filter(is_resident).count() * page
}

/// What the kernel has noted in this place for the memory that this word is in: what is allowed, or the flags.
fn noted(word: *mut AtomicU64, place: &str) -> String {
    let maps = fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let mut is_it = false;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).expect("an address");
            is_it = (number(start)..number(end)).contains(&word.addr());
            if is_it && place.is_empty() {
                return words.next().expect("it says what is allowed").to_owned();
            }
        } else if is_it && first == place {
            return words.collect::<Vec<_>>().join(" ");
        }
    }
    panic!("nothing is noted for {word:?}")
}

fn allowed(word: *mut AtomicU64) -> String {
    noted(word, "")
}

fn word(range: &Range, nth: usize) -> &AtomicU64 {
    assert!(nth < range.reserved.len());
    // SAFETY: the tests only name words that may be read. They are dropped before the range.
    unsafe { &*range.start().wrapping_add(nth) }
}

#[test]
fn memory_comes_in_and_goes_back_by_pages() {
    let (page, pages) = (page(), Pages::Usual);
    let range = Range::reserve(pages, 64 * page).expect("addresses");
    assert_eq!((allowed(range.start()).as_str(), resident(range.start(), 64 * page)), ("---p", 0));
    assert_eq!(range.extend(pages, 10 * page), Ok(()));
    assert_eq!(allowed(range.start()), "rw-p");
    (0..10 * page).for_each(|nth| word(&range, nth).store(7, Relaxed));
    assert_eq!(resident(range.start(), 64 * page), 10 * page * 8);
    assert_eq!(range.held(pages, 10 * page), 10 * page * 8);

    // A word in the fourth page is the last one that stays.
    assert!(range.give_back(3 * page + 1));
    assert_eq!(resident(range.start(), 64 * page), 4 * page * 8);
    assert_eq!(range.held(pages, 3 * page + 1), 4 * page * 8);
    let behind = range.start().wrapping_add(4 * page);
    assert_eq!(allowed(behind), "r--p");
    // A late reader finds zeros, and its reads take up no memory.
    assert!((0..4 * page).all(|nth| word(&range, nth).load(Relaxed) == 7));
    assert!((4 * page..10 * page).all(|nth| word(&range, nth).load(Relaxed) == 0));
    assert_eq!(resident(behind, 60 * page), 0);

    // The range grows and shrinks again, to its end and to its beginning.
    for _ in 0..2 {
        assert_eq!(range.extend(pages, 64 * page), Ok(()));
        (4 * page..64 * page).for_each(|nth| assert_eq!(word(&range, nth).swap(nth as u64, Relaxed), 0));
        assert_eq!(resident(range.start(), 64 * page), 64 * page * 8);
        assert!(range.give_back(4 * page));
    }
    assert!(range.give_back(0) && (0..64 * page).all(|nth| word(&range, nth).load(Relaxed) == 0));
    assert_eq!((allowed(range.start()).as_str(), resident(range.start(), 64 * page)), ("r--p", 0));
}

/// What the builder's setting promises: whole huge pages may be used, and all that may be is counted.
#[test]
fn huge_pages_are_asked_for_and_count_as_a_whole() {
    let (page, pages) = (page(), Pages::Huge);
    let huge = page * page;
    if huge > 1 << 20 {
        return;
    }
    let range = Range::reserve(pages, 4 * huge).expect("addresses");
    if fs::exists("/sys/kernel/mm/transparent_hugepage").is_ok_and(|there| there) {
        assert!(noted(range.start(), "VmFlags:").contains("hg"));
    }
    for (len, held) in
        [(1, page), (page + 1, 2 * page), (huge / 2 + 1, huge), (huge + 1, 2 * huge), (2 * huge, 2 * huge)]
    {
        assert_eq!(range.extend(pages, len), Ok(()));
        (0..len).for_each(|nth| word(&range, nth).store(1, Relaxed));
        assert_eq!((range.held(pages, len), Range::held_by_new(pages, len)), (held * 8, held * 8), "{len}");
        assert!(resident(range.start(), 4 * huge) <= held * 8, "{len}");
    }
    assert!(range.give_back(page));
    assert_eq!((range.held(pages, page), resident(range.start(), 4 * huge)), (page * 8, page * 8));
}

/// `fork` copies the range: the child's changes are its own, and it can go on to grow.
#[test]
fn a_child_has_a_copy() {
    let (page, pages) = (page(), Pages::Usual);
    let range = Range::reserve(pages, 64 * page).expect("addresses");
    range.extend(pages, 2 * page).unwrap();
    (0..2 * page).for_each(|nth| word(&range, nth).store(7, Relaxed));
    range.give_back(page);
    // SAFETY: the child calls nothing but the system, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_copy = word(&range, 0).load(Relaxed) == 7 && word(&range, page).load(Relaxed) == 0;
        word(&range, 0).store(8, Relaxed);
        let grows = range.extend(pages, 40 * page).is_ok();
        word(&range, 40 * page - 1).store(9, Relaxed);
        let shrinks = range.give_back(page) && word(&range, 40 * page - 1).load(Relaxed) == 0;
        // SAFETY: it ends the child, without its destructors.
        unsafe { libc::_exit(if is_copy && grows && shrinks { 42 } else { 1 }) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: it only writes to the variable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42, "the child ended with {status:x}");
    assert_eq!(word(&range, 0).load(Relaxed), 7);
    assert_eq!(range.extend(pages, 64 * page), Ok(()));
}

/// However many small filters a program has, it keeps mappings and addresses for everything else.
#[test]
fn a_process_has_some_ranges_at_most() {
    let (page, pages) = (page(), Pages::Usual);
    // Others of this process's tests may have some meanwhile.
    let ranges: Vec<_> = core::iter::from_fn(|| Range::reserve(pages, 16 * page)).take(2 * MOST_RANGES).collect();
    assert!((MOST_RANGES / 2..=MOST_RANGES).contains(&ranges.len()), "{}", ranges.len());
    drop(ranges);
    // Some large ones are as many.
    let most = MOST_BYTES / 8;
    assert!(!Range::is_available(most + page) && Range::reserve(pages, most + page).is_none());
    assert!(Range::reserve(pages, usize::MAX - page + 1).is_none());
    let quarter = most / 4;
    let ranges: Vec<_> = core::iter::from_fn(|| Range::reserve(pages, quarter)).take(5).collect();
    assert!((1..=4).contains(&ranges.len()), "{}", ranges.len());
}

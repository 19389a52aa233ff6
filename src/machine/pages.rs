//! PURE: which whole pages there are in a piece of memory. The system can only be asked about whole pages, and the rest
//! of a page may hold something else.

use core::ops::Range;

/// The part of the memory at the address `start`, `len` bytes long, that consists of whole pages of `page` bytes: in
/// bytes from `start` on. `None` if there is no whole page, or if `page` is no power of two, as all pages are.
#[cfg_attr(not(all(target_os = "linux", not(miri))), allow(dead_code, reason = "only Linux is asked"))]
pub(crate) fn whole_pages(start: usize, len: usize, page: usize) -> Option<Range<usize>> {
    if !page.is_power_of_two() {
        return None;
    }
    let skipped = start.wrapping_neg() % page;
    let len = len.checked_sub(skipped)? / page * page;
    (len > 0).then_some(skipped..skipped + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: usize, len: usize, page: usize) {
        let pages = whole_pages(start, len, page);
        let end = start + len;
        // Where the first page that begins in it does, in numbers that cannot overflow.
        let first = (start as u128).div_ceil(page as u128) * page as u128;
        let Some(pages) = pages else {
            assert!(first + page as u128 > end as u128, "a whole page was left out");
            return;
        };
        assert!(pages.end <= len, "{pages:?} ends outside");
        assert_eq!((start + pages.start) as u128, first, "the first page begins where pages do");
        assert!(!pages.is_empty() && pages.len().is_multiple_of(page), "a part of a page is in {pages:?}");
        assert!(len - pages.end < page, "a whole page behind {pages:?} was left out");
    }

    #[test]
    fn all_of_a_small_world() {
        for page in [1, 2, 4, 8, 16] {
            for start in (0..40).chain(usize::MAX - 80..usize::MAX - 40) {
                for len in 0..40 {
                    check(start, len, page);
                }
            }
        }
    }

    #[test]
    fn a_size_that_no_page_has_is_rejected() {
        for page in [0, 3, 4095, 4097, usize::MAX] {
            assert_eq!(whole_pages(0, usize::MAX, page), None, "{page}");
        }
    }
}

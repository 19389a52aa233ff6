//! Fallible allocation.

use crate::machine::system::zeroed;
use crate::sync::AtomicU64;

pub(crate) use crate::machine::system::release;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    Usual,
    /// Huge ones, if there are any. This is only a wish.
    Huge,
}

/// `len` elements, each from `element()`, or `None` if the allocation fails.
pub(crate) fn boxed_slice<T>(len: usize, element: impl FnMut() -> T) -> Option<Box<[T]>> {
    boxed_slice_on(Pages::Usual, len, element)
}

/// A box with the value, or `None` if the allocation fails.
pub(crate) fn boxed<T>(value: T) -> Option<Box<[T; 1]>> {
    let mut value = Some(value);
    boxed_slice(1, || value.take().expect("the slice has one element, so this runs once"))?.try_into().ok()
}

pub(crate) fn boxed_slice_on<T>(pages: Pages, len: usize, element: impl FnMut() -> T) -> Option<Box<[T]>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).ok()?;
    if pages == Pages::Huge {
        // Before the first touch: then the system decides.
        #[cfg(target_os = "linux")]
        crate::machine::system::ask_for_huge_pages(elements.spare_capacity_mut());
    }
    elements.resize_with(len, element);
    // No second allocation, which could only abort: there is no spare capacity.
    Some(elements.into_boxed_slice())
}

/// A list of zeros on this kind of pages, or `None` if the allocation fails. A large one is cleared page by page, when
/// a page is first touched. So this takes no time, whatever the length.
pub(crate) fn zeroed_on(pages: Pages, len: usize) -> Option<Box<[AtomicU64]>> {
    #[cfg_attr(not(target_os = "linux"), allow(unused_mut))]
    let mut list = zeroed(len)?;
    if pages == Pages::Huge {
        #[cfg(target_os = "linux")]
        crate::machine::system::ask_for_huge_pages(&mut list);
    }
    Some(list)
}

//! Fallible allocation.

#![allow(unsafe_code, reason = "the box of a single value; it has its SAFETY note")]

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
    let mut elements = with_room_for(len)?;
    elements.resize_with(len, element);
    // No second allocation, which could only abort: there is no spare capacity. Nor is there below.
    Some(elements.into_boxed_slice())
}

/// A box with the value, or `None` if the allocation fails.
pub(crate) fn boxed<T>(value: T) -> Option<Box<T>> {
    let mut elements = with_room_for(1)?;
    elements.push(value);
    let slice = Box::into_raw(elements.into_boxed_slice());
    // SAFETY: the slice has one element, and its memory has the size and the alignment of that element. Nothing else uses
    // the memory, which belonged to the box of the slice.
    Some(unsafe { Box::from_raw(slice.cast::<T>()) })
}

/// `len` zeros on this kind of pages, each touched, or `None` if the allocation fails.
pub(crate) fn words_on(pages: Pages, len: usize) -> Option<Box<[AtomicU64]>> {
    let mut words = with_room_for(len)?;
    if pages == Pages::Huge {
        // Before the first touch: then the system decides.
        #[cfg(target_os = "linux")]
        crate::machine::system::ask_for_huge_pages(words.spare_capacity_mut());
    }
    words.resize_with(len, || AtomicU64::new(0));
    Some(words.into_boxed_slice())
}

/// An empty list with room for exactly `len` elements, or `None` if the allocation fails.
fn with_room_for<T>(len: usize) -> Option<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).ok()?;
    Some(elements)
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

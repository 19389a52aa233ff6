//! Pure: memory that may be refused.

/// `len` elements, each from `element()`, or `None` if the allocator refuses the memory.
pub(crate) fn boxed_slice<T>(len: usize, element: impl FnMut() -> T) -> Option<Box<[T]>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).ok()?;
    elements.resize_with(len, element);
    // No second allocation, which could not be refused: there is no capacity to spare.
    Some(elements.into_boxed_slice())
}

//! Pure: how many buckets a number of items needs.
use crate::layout::Shape;

/// The share of the slots of a large table that its capacity may take.
pub(crate) fn target_load(shape: Shape) -> f64 {
    match shape.slots {
        2 => 0.84,
        3 => 0.91,
        4 => 0.95,
        5 => 0.965,
        _ => 0.97,
    }
}

/// How many items a table of so many buckets is made for.
pub(crate) fn capacity_of(shape: Shape, buckets: usize) -> usize {
    let slots = buckets.saturating_mul(shape.slots as usize);
    if buckets <= 2 {
        return slots;
    }
    let slots = slots as f64;
    (target_load(shape) * slots - 1.0 * slots.sqrt()) as usize
}

/// The smallest number of buckets made for `capacity` items.
pub(crate) fn buckets_for(shape: Shape, capacity: usize) -> usize {
    if capacity <= shape.slots as usize {
        return 1;
    }
    let mut low = 1;
    let mut high = capacity;
    while low < high {
        let middle = low + (high - low) / 2;
        if capacity_of(shape, middle * 2) >= capacity {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low * 2
}

/// The largest capacity whose table fits in the address space.
pub(crate) fn largest_capacity(shape: Shape) -> usize {
    let buckets = isize::MAX as usize / size_of::<u64>();
    capacity_of(shape, buckets - buckets % 2)
}

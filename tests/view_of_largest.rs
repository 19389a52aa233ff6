//! A view of a growable filter at its largest size. It has a process of its own, because tables of all filters share their
//! layouts: a test beside it could make one that this view lacks.
#![cfg(feature = "snapshot")]

use std::hash::{BuildHasherDefault, DefaultHasher};

use concurrent_cuckoo_filter::{GrowableCuckooFilter, View};

/// No bucket is split, and none ever will be.
#[test]
fn a_view_of_a_filter_at_its_largest_size_answers_as_the_filter() {
    type Filter = GrowableCuckooFilter<u64, BuildHasherDefault<DefaultHasher>>;
    let builder = Filter::builder_with_hasher(Default::default()).capacity(1000).max_capacity(1000);
    let filter = builder.build().expect("a valid filter");
    assert_eq!(filter.capacity(), filter.max_capacity(), "it is as large as it can be");
    (0..1000).for_each(|key| filter.insert(&key).expect("there is room"));
    let mut snapshot = Vec::new();
    filter.save(&mut snapshot).expect("there is memory");

    let view = View::<Filter, _>::new(snapshot, Default::default()).expect("its own snapshot");
    let keys: Vec<u64> = (0..3000).collect();
    let mut found = Vec::new();
    view.contains_batch(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        assert_eq!((view.contains(key), found), (filter.contains(key), filter.contains(key)), "{key}");
    }
}

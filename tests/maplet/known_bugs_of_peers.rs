//! Failures that were seen in other maplets.

use crate::maplet;

/// One maplet overwrote the value of a key by that of a look-alike.
#[test]
fn a_lookalike_overwrites_no_value_of_another_key() {
    // Fingerprints have 7 bits, so any two of these keys look alike once in a few hundred times.
    let maplet = maplet(300, 7, 0.2);
    let keys: Vec<u64> = (0..300).collect();
    keys.iter().for_each(|key| maplet.insert(key, (*key % 100) as u16).expect("there is room"));
    let shared = keys.iter().filter(|key| maplet.values(key).len() > 1).count();
    assert!(shared > 0, "some look alike");
    for key in &keys {
        assert_eq!(maplet.replace(key, (*key % 100) as u16, 100 + (*key % 28) as u16), Ok(true));
    }
    assert!(keys.iter().all(|key| maplet.values(key).contains(100 + (*key % 28) as u16)));
    for (nth, key) in keys.iter().enumerate() {
        assert!(maplet.remove(key, 100 + (*key % 28) as u16), "each has its own");
        assert!(keys[nth + 1..].iter().all(|key| maplet.values(key).contains(100 + (*key % 28) as u16)));
    }
    assert!(maplet.is_empty());
}

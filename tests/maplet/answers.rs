use concurrent_cuckoo_filter::{MapletInsertError, ValueTooLarge, Values};

use crate::maplet;

fn list(values: Values) -> Vec<u16> {
    values.into_iter().collect()
}

#[test]
fn a_key_has_its_values_until_they_are_removed() -> Result<(), MapletInsertError> {
    let maplet = maplet(100, 16, 0.001);
    assert!(maplet.values(&1).is_empty() && !maplet.contains(&1));
    maplet.insert(&1, 65_535)?;
    maplet.insert(&1, 0)?;
    maplet.insert(&1, 0)?;
    assert_eq!(list(maplet.values(&1)), [0, 65_535], "each value once, in order");
    assert_eq!([maplet.count(&1, 0), maplet.count(&1, 65_535), maplet.count(&1, 7)], [2, 1, 0]);
    assert_eq!(maplet.len(), 3);
    assert!(maplet.remove(&1, 0) && maplet.contains(&1));
    assert_eq!(list(maplet.values(&1)), [0, 65_535], "there is another copy");
    assert!(maplet.remove(&1, 0) && !maplet.remove(&1, 0));
    assert_eq!(list(maplet.values(&1)), [65_535]);
    assert!(maplet.remove(&1, 65_535));
    assert!(maplet.is_empty() && !maplet.contains(&1));
    Ok(())
}

#[test]
fn a_value_is_replaced_and_the_others_stay() -> Result<(), Box<dyn std::error::Error>> {
    let maplet = maplet(100, 4, 0.001);
    maplet.insert_batch([(&1, 3), (&1, 3), (&1, 9)])?;
    assert!(maplet.replace(&1, 3, 5)?);
    assert_eq!(list(maplet.values(&1)), [3, 5, 9], "one of two copies was replaced");
    assert!(!maplet.replace(&1, 4, 5)?, "it has no such value");
    assert!(maplet.replace(&1, 9, 9)?, "it has this value");
    assert_eq!((list(maplet.values(&1)), maplet.len()), (vec![3, 5, 9], 3));
    Ok(())
}

#[test]
fn insert_if_absent_tells_the_values_that_there_are() -> Result<(), MapletInsertError> {
    let maplet = maplet(100, 4, 0.001);
    assert!(maplet.insert_if_absent(&1, 3)?.is_empty());
    assert_eq!(list(maplet.insert_if_absent(&1, 7)?), [3]);
    maplet.insert(&1, 7)?;
    assert_eq!(list(maplet.insert_if_absent(&1, 1)?), [3, 7]);
    assert_eq!(maplet.len(), 2);
    Ok(())
}

#[test]
fn a_value_with_too_many_bits_is_an_error_and_no_change() {
    let maplet = maplet(100, 4, 0.001);
    let too_large = |error| matches!(error, MapletInsertError::ValueTooLarge { value: 16, value_bits: 4, .. });
    assert!(too_large(maplet.insert(&1, 16).unwrap_err()));
    assert!(too_large(maplet.insert_if_absent(&1, 16).unwrap_err()));
    assert!(maplet.is_empty());
    maplet.insert(&1, 0).expect("there is room");
    let ValueTooLarge { value, value_bits, .. } = maplet.replace(&1, 0, 16).unwrap_err();
    assert_eq!((value, value_bits), (16, 4));
    // A value that is too large cannot be there. Its low bits are 0, and the value 0 is there.
    assert_eq!(maplet.replace(&1, 16, 1), Ok(false));
    assert!(!maplet.remove(&1, 16));
    assert_eq!((maplet.count(&1, 16), maplet.count(&1, 0), maplet.len()), (0, 1, 1));
    let text = maplet.insert(&1, 16).unwrap_err().to_string();
    assert!(
        text.contains("the value 16 is too large") && text.contains("at most 15") && text.contains("value_bits"),
        "{text}"
    );
}

#[test]
fn the_mask_has_a_bit_for_each_value_of_up_to_six_bits() -> Result<(), MapletInsertError> {
    for bits in 1..=16 {
        let maplet = maplet(100, bits, 0.1);
        let most = ((1u32 << bits) - 1) as u16;
        maplet.insert(&1, 0)?;
        maplet.insert(&1, most)?;
        assert_eq!(maplet.values(&1).mask(), (bits <= 6).then(|| 1 | 1 << most.min(63)), "{bits}");
    }
    Ok(())
}

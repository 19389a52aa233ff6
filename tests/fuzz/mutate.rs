//! How the fuzzer changes an input.

use libfuzzer_sys::fuzzer_mutate;

use crate::kinds::kind_of;
use crate::repair::repair;

/// Sometimes the repaired bytes stay, and from then on only seals are corrected. So the fuzzer tests small snapshots that
/// are correct except for one number.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let size = fuzzer_mutate(data, size, max_size);
    if let Some((mode, bytes)) = data[..size].split_first_mut()
        && seed.is_multiple_of(4)
    {
        repair(bytes, 3, kind_of(*mode));
        *mode = *mode & !3 | 1;
    }
    size
}

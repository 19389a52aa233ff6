//! What several examples need besides the filter.
//!
//! - [`option_values`]: the values of their options, checked;
//! - [`machine`]: what they run on;
//! - [`leftovers`]: files that a killed process has left behind;
//! - [`secret_file`]: files that hold a secret.
//!
//! It depends on nothing but the standard library, so the examples' own dependencies show what an example needs.

pub mod leftovers;
pub mod machine;
pub mod option_values;
pub mod secret_file;

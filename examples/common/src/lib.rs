//! What several examples need besides the filter.
//!
//! - [`option_values`]: the values of their options, checked;
//! - [`machine`]: what they run on.
//!
//! It depends on nothing but the standard library, so the examples' own dependencies show what an example needs.

pub mod machine;
pub mod option_values;

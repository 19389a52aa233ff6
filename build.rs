//! Sets `ccf_avx512` if the compiler can compile functions for AVX-512 (`src/machine/arch/avx512.rs`), as Rust can since
//! version 1.89.
//!
//! Where this is unset, loops are compiled for AVX2 at most, and compute the same. So a build that skips this script, or a
//! compiler whose version it cannot read, loses nothing but the speed of some batches.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Miri runs no vector instructions of x86-64.
    let has_vector_files =
        env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") && env::var_os("CARGO_CFG_MIRI").is_none();
    if has_vector_files && version_of_compiler().is_some_and(|version| compiles_for_avx512(&version)) {
        println!("cargo::rustc-cfg=ccf_avx512");
    }
}

/// A line such as `rustc 1.89.0 (29483883e 2025-08-04)`.
fn version_of_compiler() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()
}

pub(crate) fn compiles_for_avx512(version: &str) -> bool {
    let Some((major, rest)) = version.strip_prefix("rustc ").and_then(|numbers| numbers.split_once('.')) else {
        return false;
    };
    let Some((minor, patch)) = rest.split_once('.') else {
        return false;
    };
    match (major.parse::<u32>(), minor.parse::<u32>()) {
        // A nightly or beta version of 1.89 may be older than the change that made the features stable.
        (Ok(1), Ok(89)) => !patch.contains("-nightly") && !patch.contains("-beta"),
        (Ok(1), Ok(minor)) => minor > 89,
        _ => false,
    }
}

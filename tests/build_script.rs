//! Which compilers the build script takes for one that has AVX-512.

#[path = "../build.rs"]
#[allow(dead_code, reason = "cargo calls its `main`")]
mod build_script;

use build_script::compiles_for_avx512;

#[test]
fn avx512_is_compiled_by_rust_1_89_and_later_ones() {
    for version in [
        "rustc 1.89.0 (29483883e 2025-08-04)\n",
        "rustc 1.95.0 (59807616e 2026-04-14)\n",
        "rustc 1.90.0-nightly (5adb489a8 2025-07-04)\n",
        "rustc 1.100.1 (0123456789 2027-01-01) (built from a source tarball)\n",
    ] {
        assert!(compiles_for_avx512(version), "{version}");
    }
    for version in [
        "rustc 1.88.0 (6b00bc388 2025-06-23)\n",
        "rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)\n",
        // The features became stable in the course of these.
        "rustc 1.89.0-nightly (d4e1159b8 2025-06-20)\n",
        "rustc 1.89.0-beta.1 (9d1b2fa38 2025-06-27)\n",
        "gccrs 14.2.0\n",
        "rustc 1.89",
        "",
    ] {
        assert!(!compiles_for_avx512(version), "{version}");
    }
}

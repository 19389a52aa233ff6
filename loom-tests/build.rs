//! Compiles the library of this package as a model. The library is the crate's own source.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=ccf_model");
    println!("cargo::rustc-cfg=ccf_model=\"loom\"");
}

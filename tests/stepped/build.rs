//! Compiles the library of this package, which is the crate's source, as a model.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=ccf_model");
    println!("cargo::rustc-cfg=ccf_model=\"steps\"");
}

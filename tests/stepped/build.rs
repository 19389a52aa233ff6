//! Compiles the library of this package as a model.

fn main() {
    controls::compile_model("steps", "../../src");
}

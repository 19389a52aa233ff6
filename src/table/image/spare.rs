//! PURE: memory for words that are yet to be copied for saves. `table/image/copy_on_write.rs` says when a thread gets some.

use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;

use crate::machine::memory::boxed;
use crate::word::bucket::Bucket;

/// A word that was copied for a save, or the memory for one.
///
/// Those of a chunk are a digital search tree: a node of the depth `d` has its descendants on the left where bit `d` of
/// their places in the chunk is 0, and on the right where it is 1. So no path is longer than a place has bits, in
/// whatever order the words come.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) bucket: u32,
    pub(super) word: Bucket,
    pub(super) next: [Option<Box<Node>>; 2],
}

/// Nodes for words that a thread may have to copy for saves. It gets them where it holds no lock. It gives those that it does
/// not need back to the allocator, again without a lock.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    /// A list, each with the next one as its first descendant.
    ///
    /// `drop` frees all. What the compiler would do after that finds nothing, but is a kilobyte of machine code wherever a lock
    /// is released.
    first: ManuallyDrop<RefCell<Option<Box<Node>>>>,
    len: Cell<u64>,
    /// Whether there will be no further node: then a save fails that needs one.
    is_final: Cell<bool>,
}

impl Spare {
    /// Gets further nodes from the allocator, until there are so many. The caller holds no lock. If there is none,
    /// there will be no further node.
    #[cold]
    pub(crate) fn fill(&self, nodes: u64) {
        while !self.suffices(nodes) {
            // No borrow is held meanwhile: the allocator may run any code.
            match boxed(Node { bucket: 0, word: Bucket(0), next: [None, None] }) {
                Some(node) => self.put(node),
                None => self.end(),
            }
        }
    }

    /// Whether there are as many nodes, or will be no further one.
    pub(crate) fn suffices(&self, nodes: u64) -> bool {
        self.len.get() >= nodes || self.is_final()
    }

    /// From now on, there will be no further node.
    pub(crate) fn end(&self) {
        self.is_final.set(true);
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final.get()
    }

    fn put(&self, mut node: Box<Node>) {
        let mut first = self.first.borrow_mut();
        node.next[0] = first.take();
        *first = Some(node);
        self.len.set(self.len.get() + 1);
    }

    fn take(&self) -> Option<Box<Node>> {
        let mut first = self.first.borrow_mut();
        let mut node = first.take()?;
        *first = node.next[0].take();
        self.len.set(self.len.get() - 1);
        Some(node)
    }

    /// Frees all nodes, one by one: the list may be longer than the stack is deep.
    #[cold]
    fn free(&self) {
        while let Some(node) = self.take() {
            drop(node);
        }
    }

    /// A node with this word, if there is one left.
    pub(super) fn node(&self, bucket: usize, word: Bucket) -> Option<Box<Node>> {
        let mut node = self.take()?;
        (node.bucket, node.word) = (bucket as u32, word);
        Some(node)
    }
}

impl Drop for Spare {
    #[inline(always)]
    fn drop(&mut self) {
        if self.len.get() > 0 {
            self.free();
        }
    }
}

/// The words of a chunk that were copied for a save.
#[derive(Debug, Default)]
pub(crate) struct CopiedChunk(pub(super) Option<Box<Node>>);

impl CopiedChunk {
    /// Passes on each bucket with its word.
    pub(crate) fn each(&self, each: &mut dyn FnMut(usize, Bucket)) {
        pass_on(self.0.as_deref(), each);
    }
}

fn pass_on(node: Option<&Node>, each: &mut dyn FnMut(usize, Bucket)) {
    if let Some(node) = node {
        each(node.bucket as usize, node.word);
        node.next.iter().for_each(|next| pass_on(next.as_deref(), each));
    }
}

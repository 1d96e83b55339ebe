//! The sparse trie: a stored Merkle-Patricia trie of which only the touched paths are loaded.
//!
//! A batch of sorted updates is applied in one recursive pass. A node is read when the first update passes through it, and
//! sealed (encoded, hashed once, given to the writes under its path) as soon as its parent knows that it stays; nothing else
//! stays in memory. So cost grows with the touched keys, and a bulk build holds one path of nodes per thread.
//!
//! What is stored: the root under the empty path, whatever its size; every other node of 32 bytes or more under its
//! path. A shorter node lives only in the RLP of its parent. A stored node is read back against the hash its parent gives.
//!
//! Disjoint subtries are worked on in parallel; results are joined in key order, so the outcome is the same for any
//! number of threads.

use super::{
    TrieFault,
    node::{Child, HASHED_NODE_SIZE_BYTES_MIN, Node},
};
use crate::state::StateError;
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Below this many updates a subtrie is cheaper to do on one thread.
const PARALLEL_UPDATES_MIN: usize = 64;

/// Reads the RLP of the stored node at a path.
pub(super) type Load<'a> = dyn Fn(&Nibbles) -> Result<Option<Bytes>, StateError> + Sync + 'a;

/// A key with its new value; `None` deletes.
pub(super) type Update = (Nibbles, Option<Bytes>);

/// What a batch of updates does to a trie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Updated {
    /// Root hash after the updates.
    pub(super) root: B256,
    /// Stored nodes to write or delete, by path.
    pub(super) nodes: BTreeMap<Nibbles, Option<Bytes>>,
}

/// Applies `updates` (sorted by key, no key twice) to the stored trie. `root` is the hash its owner records, if any does.
pub(super) fn update(
    load: &Load<'_>,
    root: Option<B256>,
    updates: &[Update],
) -> Result<Updated, StateError> {
    debug_assert!(
        updates.is_sorted_by(|a, b| a.0 < b.0),
        "updates are sorted by key"
    );
    let empty = Nibbles::new();
    let (root_before, mut slot) = match load_root(load, root)? {
        None => (EMPTY_ROOT_HASH, Child::Empty),
        Some((hash, rlp)) => (hash, Child::Node(Box::new(decode(&empty, &rlp)?))),
    };
    let mut out = Out::default();
    let changed = Batch { load }.apply(&mut slot, empty, updates, &mut out)?;
    if !changed {
        return Ok(Updated {
            root: root_before,
            nodes: BTreeMap::new(),
        });
    }
    if root_before != EMPTY_ROOT_HASH {
        out.stale.push(empty);
    }
    let root = match slot {
        Child::Empty => EMPTY_ROOT_HASH,
        Child::Node(node) => {
            let rlp = node.encode();
            let hash = keccak256(&rlp);
            out.writes.push((empty, rlp.into()));
            hash
        }
        Child::Hash(hash) => hash,
    };
    Ok(Updated {
        root,
        nodes: out.into_nodes(),
    })
}

/// Stored nodes from the root towards `key`, and the value there if the trie has it.
pub(super) fn walk(
    load: &Load<'_>,
    root: Option<B256>,
    key: &Nibbles,
) -> Result<(Vec<Bytes>, Option<Bytes>), StateError> {
    let mut proof = Vec::new();
    let Some((_, rlp)) = load_root(load, root)? else {
        return Ok((proof, None));
    };
    let mut path = Nibbles::new();
    let mut node = decode(&path, &rlp)?;
    proof.push(rlp);
    loop {
        let rest = key.slice(path.len()..);
        let child = match node {
            Node::Leaf { suffix, value } => return Ok((proof, (suffix == rest).then_some(value))),
            Node::Extension { prefix, child } => {
                if !rest.starts_with(&prefix) {
                    return Ok((proof, None));
                }
                path.extend(&prefix);
                child
            }
            Node::Branch {
                mut children,
                value,
            } => {
                let Some(nibble) = rest.first() else {
                    return Ok((proof, value));
                };
                path.push(nibble);
                std::mem::replace(&mut children[usize::from(nibble)], Child::Empty)
            }
        };
        node = match child {
            Child::Empty => return Ok((proof, None)),
            Child::Node(embedded) => *embedded,
            Child::Hash(hash) => {
                let rlp = load_rlp(load, &path, Some(hash))?;
                let node = decode(&path, &rlp)?;
                proof.push(rlp);
                node
            }
        };
    }
}

fn load_root(load: &Load<'_>, expected: Option<B256>) -> Result<Option<(B256, Bytes)>, StateError> {
    let path = Nibbles::new();
    if expected == Some(EMPTY_ROOT_HASH) {
        return Ok(None);
    }
    let Some(rlp) = load(&path)? else {
        return match expected {
            None => Ok(None),
            Some(_) => Err(TrieFault::MissingNode { path }.into()),
        };
    };
    let hash = keccak256(&rlp);
    check_hash(&path, expected, hash)?;
    Ok(Some((hash, rlp)))
}

fn load_rlp(load: &Load<'_>, path: &Nibbles, expected: Option<B256>) -> Result<Bytes, StateError> {
    let rlp = load(path)?.ok_or(TrieFault::MissingNode { path: *path })?;
    if expected.is_some() {
        check_hash(path, expected, keccak256(&rlp))?;
    }
    Ok(rlp)
}

fn check_hash(path: &Nibbles, expected: Option<B256>, got: B256) -> Result<(), TrieFault> {
    match expected {
        Some(expected) if expected != got => Err(TrieFault::NodeHash {
            path: *path,
            expected,
            got,
        }),
        _ => Ok(()),
    }
}

fn decode(path: &Nibbles, rlp: &[u8]) -> Result<Node, TrieFault> {
    Node::decode(rlp).map_err(|reason| TrieFault::UndecodableNode {
        path: *path,
        reason,
    })
}

/// Writes and superseded paths of one subtrie.
#[derive(Debug, Default)]
struct Out {
    writes: Vec<(Nibbles, Bytes)>,
    /// Paths whose stored node is no longer as it was. A write to the same path replaces it, else it is deleted.
    stale: Vec<Nibbles>,
}

impl Out {
    fn append(&mut self, mut other: Self) {
        self.writes.append(&mut other.writes);
        self.stale.append(&mut other.stale);
    }

    fn into_nodes(self) -> BTreeMap<Nibbles, Option<Bytes>> {
        let mut nodes: BTreeMap<_, _> = self
            .writes
            .into_iter()
            .map(|(path, rlp)| (path, Some(rlp)))
            .collect();
        for path in self.stale {
            nodes.entry(path).or_insert(None);
        }
        nodes
    }

    /// Encodes a node that stays at `path`: a reference by hash with its write, or the node itself if it is short.
    fn seal(&mut self, child: Child, path: Nibbles) -> Child {
        match child {
            Child::Node(node) if node.length() >= HASHED_NODE_SIZE_BYTES_MIN => {
                let rlp = node.encode();
                let hash = keccak256(&rlp);
                self.writes.push((path, rlp.into()));
                Child::Hash(hash)
            }
            other => other,
        }
    }
}

/// One pass over a trie.
struct Batch<'a> {
    load: &'a Load<'a>,
}

impl Batch<'_> {
    /// Applies the updates below `path` to `slot`; `false` if they change nothing. The node left in `slot` is not sealed,
    /// its descendants are.
    fn apply(
        &self,
        slot: &mut Child,
        path: Nibbles,
        updates: &[Update],
        out: &mut Out,
    ) -> Result<bool, StateError> {
        if updates.is_empty() {
            return Ok(false);
        }
        match slot {
            Child::Empty => {
                let pairs: Vec<_> = updates.iter().filter_map(inserted).collect();
                *slot = build(&pairs, path, out);
                Ok(!pairs.is_empty())
            }
            Child::Hash(hash) => {
                let node = decode(&path, &load_rlp(self.load, &path, Some(*hash))?)?;
                let mut loaded = Child::Node(Box::new(node));
                let changed = self.apply(&mut loaded, path, updates, out)?;
                if changed {
                    out.stale.push(path);
                    *slot = loaded;
                }
                Ok(changed)
            }
            Child::Node(node) => match node.as_mut() {
                Node::Leaf { suffix, value } => {
                    let key = path.join(suffix);
                    let Some(pairs) = merge_leaf(key, value, updates) else {
                        return Ok(false);
                    };
                    *slot = build(&pairs, path, out);
                    Ok(true)
                }
                Node::Extension { .. } => self.apply_to_extension(slot, path, updates, out),
                Node::Branch { .. } => self.apply_to_branch(slot, path, updates, out),
            },
        }
    }

    fn apply_to_extension(
        &self,
        slot: &mut Child,
        path: Nibbles,
        updates: &[Update],
        out: &mut Out,
    ) -> Result<bool, StateError> {
        let Child::Node(node) = slot else {
            return Ok(false);
        };
        let Node::Extension { prefix, child } = node.as_mut() else {
            return Ok(false);
        };
        let below = path.join(prefix);
        // Where the inserted keys leave the extension first; deleted keys beside it were never there.
        let shared = updates
            .iter()
            .filter(|(_, value)| value.is_some())
            .map(|(key, _)| key.slice(path.len()..).common_prefix_length(prefix))
            .fold(prefix.len(), usize::min);
        if shared == prefix.len() {
            let from = updates.partition_point(|(key, _)| *key < below);
            let inside = updates.get(from..).unwrap_or_default();
            let count = inside.partition_point(|(key, _)| key.starts_with(&below));
            let inside = inside.get(..count).unwrap_or_default();
            if !self.apply(child, below, inside, out)? {
                return Ok(false);
            }
            let child = std::mem::replace(child, Child::Empty);
            *slot = extend_upwards(*prefix, child, path, out);
            return Ok(true);
        }
        // The extension parts at `shared`: a branch with the rest of it as one child takes its place.
        let prefix = *prefix;
        let child = std::mem::replace(child, Child::Empty);
        let mut children = Node::empty_branch_children();
        let rest = prefix.slice(shared.saturating_add(1)..);
        children[usize::from(prefix.get_unchecked(shared))] = if rest.is_empty() {
            child
        } else {
            Child::Node(Box::new(Node::Extension {
                prefix: rest,
                child,
            }))
        };
        let head = prefix.slice(..shared);
        let branch_path = path.join(&head);
        let mut branch = Child::Node(Box::new(Node::Branch {
            children,
            value: None,
        }));
        let from = updates.partition_point(|(key, _)| *key < branch_path);
        let inside = updates.get(from..).unwrap_or_default();
        let count = inside.partition_point(|(key, _)| key.starts_with(&branch_path));
        self.apply_to_branch(
            &mut branch,
            branch_path,
            inside.get(..count).unwrap_or_default(),
            out,
        )?;
        *slot = extend_upwards(head, branch, path, out);
        Ok(true)
    }

    fn apply_to_branch(
        &self,
        slot: &mut Child,
        path: Nibbles,
        updates: &[Update],
        out: &mut Out,
    ) -> Result<bool, StateError> {
        let Child::Node(node) = slot else {
            return Ok(false);
        };
        let Node::Branch { children, value } = node.as_mut() else {
            return Ok(false);
        };
        let mut changed = false;
        let (own, below) = match updates.split_first() {
            Some(((key, new), rest)) if key.len() == path.len() => (Some(new), rest),
            _ => (None, updates),
        };
        if let Some(new) = own
            && new != value
        {
            value.clone_from(new);
            changed = true;
        }
        let mut jobs = Vec::with_capacity(16);
        let mut rest = below;
        for (nibble, child) in (0u8..).zip(children.iter_mut()) {
            let count = rest.partition_point(|(key, _)| key.get_unchecked(path.len()) == nibble);
            let (these, others) = rest.split_at(count);
            rest = others;
            if !these.is_empty() {
                jobs.push((join_nibble(path, nibble), child, these));
            }
        }
        if below.len() >= PARALLEL_UPDATES_MIN {
            let done: Vec<(bool, Out)> = jobs
                .into_par_iter()
                .map(|(path, child, these)| {
                    let mut out = Out::default();
                    let changed = self.apply(child, path, these, &mut out)?;
                    Ok((changed, out))
                })
                .collect::<Result<_, StateError>>()?;
            for (child_changed, child_out) in done {
                changed |= child_changed;
                out.append(child_out);
            }
        } else {
            for (path, child, these) in jobs {
                changed |= self.apply(child, path, these, out)?;
            }
        }
        if changed {
            self.settle_branch(slot, path, out)?;
        }
        Ok(changed)
    }

    /// Brings a changed branch into canonical form: with a single thing left below it is no branch any more.
    fn settle_branch(
        &self,
        slot: &mut Child,
        path: Nibbles,
        out: &mut Out,
    ) -> Result<(), StateError> {
        let Child::Node(node) = slot else {
            return Ok(());
        };
        let Node::Branch { children, value } = node.as_mut() else {
            return Ok(());
        };
        let mut occupied = (0u8..)
            .zip(children.iter_mut())
            .filter(|(_, child)| !matches!(child, Child::Empty));
        let first = occupied.next();
        let second = occupied.next();
        match (first, second, value.take()) {
            (None, _, None) => *slot = Child::Empty,
            (None, _, Some(value)) => {
                *slot = Child::Node(Box::new(Node::Leaf {
                    suffix: Nibbles::new(),
                    value,
                }));
            }
            (Some((nibble, child)), None, None) => {
                let child = std::mem::replace(child, Child::Empty);
                let child = self.loaded_if_not_branch(child, join_nibble(path, nibble), out)?;
                *slot = extend_upwards(Nibbles::from_nibbles([nibble]), child, path, out);
            }
            (Some(_), _, kept) => {
                *value = kept;
                for (nibble, child) in (0u8..).zip(children.iter_mut()) {
                    let unsealed = std::mem::replace(child, Child::Empty);
                    *child = out.seal(unsealed, join_nibble(path, nibble));
                }
            }
        }
        Ok(())
    }

    /// The last child of a branch merges with its parent unless it is a branch itself, which stays where it is.
    fn loaded_if_not_branch(
        &self,
        child: Child,
        path: Nibbles,
        out: &mut Out,
    ) -> Result<Child, StateError> {
        let Child::Hash(hash) = child else {
            return Ok(child);
        };
        match decode(&path, &load_rlp(self.load, &path, Some(hash))?)? {
            Node::Branch { .. } => Ok(child),
            node @ (Node::Leaf { .. } | Node::Extension { .. }) => {
                out.stale.push(path);
                Ok(Child::Node(Box::new(node)))
            }
        }
    }
}

fn inserted(update: &Update) -> Option<(Nibbles, Bytes)> {
    update.1.clone().map(|value| (update.0, value))
}

const fn join_nibble(mut path: Nibbles, nibble: u8) -> Nibbles {
    path.push_unchecked(nibble);
    path
}

/// The keys left where a leaf was; `None` if the updates leave it as it is.
fn merge_leaf(key: Nibbles, value: &Bytes, updates: &[Update]) -> Option<Vec<(Nibbles, Bytes)>> {
    let mut pairs: Vec<_> = updates.iter().filter_map(inserted).collect();
    match updates.binary_search_by(|(updated, _)| updated.cmp(&key)) {
        Ok(index) => {
            let unchanged = updates
                .get(index)
                .is_some_and(|(_, new)| new.as_ref() == Some(value));
            (!(unchanged && pairs.len() == 1)).then_some(pairs)
        }
        Err(_) if pairs.is_empty() => None,
        Err(_) => {
            let at = pairs.partition_point(|(other, _)| *other < key);
            pairs.insert(at, (key, value.clone()));
            Some(pairs)
        }
    }
}

/// Puts `prefix` above `child`, which is not sealed, merging with a leaf or an extension below.
fn extend_upwards(prefix: Nibbles, child: Child, path: Nibbles, out: &mut Out) -> Child {
    if prefix.is_empty() {
        return child;
    }
    let node = match child {
        Child::Empty => return Child::Empty,
        Child::Hash(hash) => Node::Extension {
            prefix,
            child: Child::Hash(hash),
        },
        Child::Node(node) => match *node {
            Node::Leaf { suffix, value } => Node::Leaf {
                suffix: prefix.join(&suffix),
                value,
            },
            Node::Extension {
                prefix: lower,
                child,
            } => Node::Extension {
                prefix: prefix.join(&lower),
                child,
            },
            branch @ Node::Branch { .. } => Node::Extension {
                prefix,
                child: out.seal(Child::Node(Box::new(branch)), path.join(&prefix)),
            },
        },
    };
    Child::Node(Box::new(node))
}

/// A subtrie from its sorted keys, where nothing was. The top node is not sealed.
fn build(pairs: &[(Nibbles, Bytes)], path: Nibbles, out: &mut Out) -> Child {
    let (first, last) = match pairs {
        [] => return Child::Empty,
        [(key, value)] => {
            return Child::Node(Box::new(Node::Leaf {
                suffix: key.slice(path.len()..),
                value: value.clone(),
            }));
        }
        [first, .., last] => (first, last),
    };
    let branch_depth = first.0.common_prefix_length(&last.0);
    let branch_path = first.0.slice(..branch_depth);
    let (value, below) = if first.0.len() == branch_depth {
        (Some(first.1.clone()), &pairs[1..])
    } else {
        (None, pairs)
    };
    let mut children = Node::empty_branch_children();
    let mut jobs = Vec::with_capacity(16);
    let mut rest = below;
    for (nibble, child) in (0u8..).zip(children.iter_mut()) {
        let count = rest.partition_point(|(key, _)| key.get_unchecked(branch_depth) == nibble);
        let (these, others) = rest.split_at(count);
        rest = others;
        if !these.is_empty() {
            jobs.push((join_nibble(branch_path, nibble), child, these));
        }
    }
    let build_child = |(path, child, these): (Nibbles, &mut Child, &[_]), out: &mut Out| {
        let unsealed = build(these, path, out);
        *child = out.seal(unsealed, path);
    };
    if below.len() >= PARALLEL_UPDATES_MIN {
        let done: Vec<Out> = jobs
            .into_par_iter()
            .map(|job| {
                let mut out = Out::default();
                build_child(job, &mut out);
                out
            })
            .collect();
        for child_out in done {
            out.append(child_out);
        }
    } else {
        for job in jobs {
            build_child(job, out);
        }
    }
    let branch = Child::Node(Box::new(Node::Branch { children, value }));
    extend_upwards(branch_path.slice(path.len()..), branch, path, out)
}

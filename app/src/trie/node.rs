//! RLP of one trie node, both ways.
//!
//! A node is a leaf `[path, value]`, an extension `[path, child]` or a branch `[child; 16] + value`, with paths in hex-prefix
//! encoding. A child is empty (0x80), the keccak256 of a node (32 bytes), or a node embedded whole because its RLP
//! is shorter than 32 bytes. Source: Ethereum yellow paper, appendices C and D.

use alloy_primitives::{B256, Bytes};
use alloy_rlp::{EMPTY_STRING_CODE, Header};
use alloy_trie::Nibbles;

/// Nodes whose RLP is shorter than this live inside their parent, not under a hash.
pub(super) const HASHED_NODE_SIZE_BYTES_MIN: usize = 32;

/// What a node holds in place of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Child {
    /// Nothing below.
    Empty,
    /// A node stored under its own path, by its hash.
    Hash(B256),
    /// A node in memory: embedded in its parent, or not yet sealed (see `sparse`).
    Node(Box<Node>),
}

/// A node in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// The only key below this path.
    Leaf { suffix: Nibbles, value: Bytes },
    /// All keys below share `prefix`, which is not empty; the child is a branch.
    Extension { prefix: Nibbles, child: Child },
    /// At least two of children and value are there.
    Branch {
        children: Box<[Child; 16]>,
        value: Option<Bytes>,
    },
}

/// Why bytes are not a trie node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeDecodeError {
    /// Not canonical RLP.
    #[error("rlp: {0}")]
    Rlp(alloy_rlp::Error),
    /// A node has 2 or 17 items.
    #[error("node of {0} items")]
    ItemCount(usize),
    /// The hex-prefix flag nibble or its padding is wrong, or the path is too long.
    #[error("bad hex-prefix path")]
    Path,
    /// A child is a string of neither 0 nor 32 bytes, or an embedded list of 32 bytes or more.
    #[error("child of {0} bytes")]
    ChildSize(usize),
    /// An extension leads nowhere.
    #[error("extension without child")]
    EmptyExtension,
}

impl From<alloy_rlp::Error> for NodeDecodeError {
    fn from(error: alloy_rlp::Error) -> Self {
        Self::Rlp(error)
    }
}

impl Node {
    /// An empty branch, to be filled.
    pub(super) fn empty_branch_children() -> Box<[Child; 16]> {
        Box::new([const { Child::Empty }; 16])
    }

    /// RLP of the node. Children in memory must be embeddable ones.
    pub(super) fn encode(&self) -> Vec<u8> {
        let payload_length = self.payload_length();
        let mut out = Vec::with_capacity(payload_length.saturating_add(9));
        self.encode_to(payload_length, &mut out);
        out
    }

    fn encode_to(&self, payload_length: usize, out: &mut Vec<u8>) {
        Header {
            list: true,
            payload_length,
        }
        .encode(out);
        match self {
            Self::Leaf { suffix, value } => {
                encode_path(suffix, true, out);
                encode_string(value, out);
            }
            Self::Extension { prefix, child } => {
                encode_path(prefix, false, out);
                child.encode_to(out);
            }
            Self::Branch { children, value } => {
                for child in children.iter() {
                    child.encode_to(out);
                }
                encode_string(value_bytes(value), out);
            }
        }
    }

    fn payload_length(&self) -> usize {
        match self {
            Self::Leaf { suffix, value } => {
                path_length(suffix).saturating_add(string_length(value))
            }
            Self::Extension { prefix, child } => path_length(prefix).saturating_add(child.length()),
            Self::Branch { children, value } => children
                .iter()
                .map(Child::length)
                .fold(string_length(value_bytes(value)), usize::saturating_add),
        }
    }

    /// Length of [`Node::encode`] without encoding.
    pub(super) fn length(&self) -> usize {
        let payload_length = self.payload_length();
        alloy_rlp::length_of_length(payload_length).saturating_add(payload_length)
    }

    /// Parses exactly one node.
    pub(super) fn decode(rlp: &[u8]) -> Result<Self, NodeDecodeError> {
        let mut rest = rlp;
        let node = Self::decode_from(&mut rest)?;
        if rest.is_empty() {
            Ok(node)
        } else {
            Err(alloy_rlp::Error::UnexpectedLength.into())
        }
    }

    fn decode_from(buf: &mut &[u8]) -> Result<Self, NodeDecodeError> {
        let mut payload = Header::decode_bytes(buf, true)?;
        // Each item as its whole RLP, header included.
        let mut items: [&[u8]; 17] = [&[]; 17];
        let mut count = 0usize;
        while !payload.is_empty() {
            let mut rest = payload;
            let header = Header::decode(&mut rest)?;
            if rest.len() < header.payload_length {
                return Err(alloy_rlp::Error::InputTooShort.into());
            }
            let item_length = payload
                .len()
                .saturating_sub(rest.len())
                .saturating_add(header.payload_length);
            let (item, tail) = payload.split_at(item_length);
            *items.get_mut(count).ok_or(NodeDecodeError::ItemCount(18))? = item;
            count = count.saturating_add(1);
            payload = tail;
        }
        match count {
            2 => {
                let [path, second, ..] = items;
                let (path, is_leaf) = decode_path(string_payload(path)?)?;
                if is_leaf {
                    let value = Bytes::copy_from_slice(string_payload(second)?);
                    return Ok(Self::Leaf {
                        suffix: path,
                        value,
                    });
                }
                if path.is_empty() {
                    return Err(NodeDecodeError::Path);
                }
                match Child::decode(second)? {
                    Child::Empty => Err(NodeDecodeError::EmptyExtension),
                    child @ (Child::Hash(_) | Child::Node(_)) => Ok(Self::Extension {
                        prefix: path,
                        child,
                    }),
                }
            }
            17 => {
                let mut children = Self::empty_branch_children();
                for (child, item) in children.iter_mut().zip(items) {
                    *child = Child::decode(item)?;
                }
                let value = string_payload(items[16])?;
                let value = (!value.is_empty()).then(|| Bytes::copy_from_slice(value));
                Ok(Self::Branch { children, value })
            }
            other => Err(NodeDecodeError::ItemCount(other)),
        }
    }
}

impl Child {
    fn length(&self) -> usize {
        match self {
            Self::Empty => 1,
            Self::Hash(_) => 33,
            Self::Node(node) => node.length(),
        }
    }

    fn encode_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => out.push(EMPTY_STRING_CODE),
            Self::Hash(hash) => encode_string(hash.as_slice(), out),
            Self::Node(node) => node.encode_to(node.payload_length(), out),
        }
    }

    fn decode(item: &[u8]) -> Result<Self, NodeDecodeError> {
        match item {
            [EMPTY_STRING_CODE] => Ok(Self::Empty),
            // 0xa0: a string of 32 bytes. 0xc0 and up: a list.
            [0xa0, hash @ ..] if hash.len() == 32 => Ok(Self::Hash(B256::from_slice(hash))),
            [0xc0..=0xff, ..] if item.len() < HASHED_NODE_SIZE_BYTES_MIN => {
                Ok(Self::Node(Box::new(Node::decode(item)?)))
            }
            other => Err(NodeDecodeError::ChildSize(other.len())),
        }
    }
}

/// RLP has no absent value: it is the empty string.
fn value_bytes(value: &Option<Bytes>) -> &[u8] {
    value.as_ref().map_or(&[], |value| value.as_ref())
}

fn string_payload(mut item: &[u8]) -> Result<&[u8], NodeDecodeError> {
    Ok(Header::decode_bytes(&mut item, false)?)
}

fn encode_string(value: &[u8], out: &mut Vec<u8>) {
    alloy_rlp::Encodable::encode(value, out);
}

fn string_length(value: &[u8]) -> usize {
    alloy_rlp::Encodable::length(value)
}

/// RLP length of the hex-prefix path: one flag byte and two nibbles a byte. A lone byte is below 0x80, its own RLP.
const fn path_length(path: &Nibbles) -> usize {
    match path.len() / 2 {
        0 => 1,
        pairs => pairs.saturating_add(2),
    }
}

fn encode_path(path: &Nibbles, is_leaf: bool, out: &mut Vec<u8>) {
    let flag = if is_leaf { 0x20 } else { 0x00 };
    let odd = path.len() % 2 == 1;
    let mut packed = [0u8; 33];
    let rest = if odd {
        packed[0] = flag | 0x10 | path.first().unwrap_or_default();
        path.slice(1..)
    } else {
        packed[0] = flag;
        *path
    };
    rest.pack_to(&mut packed[1..]);
    encode_string(&packed[..rest.byte_len().saturating_add(1)], out);
}

fn decode_path(bytes: &[u8]) -> Result<(Nibbles, bool), NodeDecodeError> {
    let (&first, rest) = bytes.split_first().ok_or(NodeDecodeError::Path)?;
    let (is_leaf, odd) = match first >> 4 {
        0 => (false, false),
        1 => (false, true),
        2 => (true, false),
        3 => (true, true),
        _ => return Err(NodeDecodeError::Path),
    };
    let nibble = first & 0x0f;
    if (!odd && nibble != 0) || rest.len() > 32 || (odd && rest.len() == 32) {
        return Err(NodeDecodeError::Path);
    }
    let tail = Nibbles::unpack(rest);
    if !odd {
        return Ok((tail, is_leaf));
    }
    let mut path = Nibbles::from_nibbles([nibble]);
    path.extend(&tail);
    Ok((path, is_leaf))
}

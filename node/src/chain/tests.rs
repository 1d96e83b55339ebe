//! Tests of the chain.

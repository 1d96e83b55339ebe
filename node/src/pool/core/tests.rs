//! Tests of the pool's rules.

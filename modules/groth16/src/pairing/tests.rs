use super::*;
use crate::encoding::{read_g2, write_g2};
use ark_bn254::{Fr, G1Projective, G2Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{BigInteger, PrimeField, UniformRand};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};

fn rng() -> StdRng {
    StdRng::seed_from_u64(37)
}

/// A point of the twist, almost never in the subgroup.
fn point_of_twist(rng: &mut StdRng) -> G2Affine {
    loop {
        if let Some(point) = G2Affine::get_point_from_x_unchecked(Fq2::rand(rng), rng.r#gen()) {
            return point;
        }
    }
}

/// Order of the twist divided by r, limbs little-endian.
const COFACTOR: [u64; 4] = [
    0x345f2299c0f9fa8d,
    0x06ceecda572a2489,
    0xb85045b68181585e,
    0x30644e72e131a029,
];

#[test]
fn product_of_pairings_equals_the_librarys() {
    let rng = &mut rng();
    for _ in 0..4 {
        let g1: Vec<_> = (0..3)
            .map(|_| G1Projective::rand(rng).into_affine())
            .collect();
        let g2: Vec<_> = (0..3)
            .map(|_| G2Projective::rand(rng).into_affine())
            .collect();
        let traces: Vec<_> = g2
            .iter()
            .map(|q| Trace::of(q).expect("in the subgroup"))
            .collect();
        let expected = Bn254::multi_pairing(&g1, &g2).0;
        let pairs: Vec<_> = g1.iter().copied().zip(&traces).collect();
        assert_eq!(
            final_exponentiation(miller_loop(&pairs, &[])),
            Some(expected)
        );
        let [second, third] = Evaluation::of([g1[1], g1[2]]).map(|e| e.expect("not the identity"));
        let (fixed_second, fixed_third) = (traces[1].fix(), traces[2].fix());
        let product = miller_loop(
            &pairs[..1],
            &[(second, &fixed_second), (third, &fixed_third)],
        );
        assert_eq!(final_exponentiation(product), Some(expected));
    }
}

#[test]
fn subgroup_check_agrees_with_multiplication_by_the_order() {
    let rng = &mut rng();
    for _ in 0..50 {
        let point = point_of_twist(rng);
        let inside = point.mul_bigint(Fr::MODULUS).is_zero();
        assert_eq!(Trace::of(&point).is_some(), inside);
        let cleared = point.mul_bigint(COFACTOR).into_affine();
        assert!(Trace::of(&cleared).is_some());
    }
}

/// The cofactor is 10069 · 5864401 · a large factor: points of the small orders meet the walk's exceptional cases.
#[test]
fn refuses_points_of_small_order_alone_or_added_to_good_ones() {
    let rng = &mut rng();
    let cofactor = ark_ff::BigInt::<4>::new(COFACTOR);
    for order in [10069u64, 5864401, 10069 * 5864401] {
        let co_order = divide(cofactor, order);
        let mut found = 0;
        while found < 8 {
            let point = point_of_twist(rng)
                .mul_bigint(Fr::MODULUS)
                .mul_bigint(co_order.0);
            if point.is_zero() {
                continue;
            }
            found += 1;
            assert!(point.mul_bigint([order]).is_zero());
            let good = G2Projective::rand(rng);
            for bad in [point, good + point, G2Projective::generator() - point] {
                let bad = bad.into_affine();
                assert!(bad.is_on_curve() && Trace::of(&bad).is_none());
                let mut bytes = Vec::new();
                write_g2(&bad, &mut bytes);
                let bytes = bytes.as_slice().try_into().expect("a point of G2");
                assert_eq!(
                    read_g2(bytes).map(|(point, _)| point),
                    Err(crate::EncodingError::NotInSubgroup)
                );
            }
        }
    }
}

/// Multiples k·Q of a small-order point for every k below the smallest order: no coincidence slips through.
#[test]
fn refuses_every_multiple_of_a_point_of_the_smallest_order() {
    let rng = &mut rng();
    let co_order = divide(ark_ff::BigInt::<4>::new(COFACTOR), 10069);
    let unit = loop {
        let point = point_of_twist(rng)
            .mul_bigint(Fr::MODULUS)
            .mul_bigint(co_order.0);
        if !point.is_zero() {
            break point;
        }
    };
    let mut multiple = unit;
    for _ in 1..10069 {
        assert!(Trace::of(&multiple.into_affine()).is_none());
        multiple += unit;
    }
    assert!(multiple.is_zero());
}

/// gcd(N, h) = 1 of the module documentation, with N computed modulo h.
#[test]
fn norm_of_the_endomorphism_is_prime_to_the_cofactor() {
    let h = Wide::from_limbs(&COFACTOR);
    let x = Wide::from_limbs(&[Config::X[0]]);
    let q = Wide::from_limbs(&Fq::MODULUS.0);
    let one = Wide::from_limbs(&[1]);
    let mul = |a: &Wide, b: &Wide| a.mul_mod(b, &h);
    let add = |a: &Wide, b: &Wide| a.add_mod(b, &h);
    let sub = |a: &Wide, b: &Wide| a.sub_mod(b, &h);
    let six_x = mul(&x, &Wide::from_limbs(&[6]));
    let t = add(&mul(&six_x, &x), &one);
    let q = q.rem(&h);
    let a = sub(
        &add(&add(&six_x, &Wide::from_limbs(&[2])), &q),
        &mul(&t, &q),
    );
    let b = sub(&add(&sub(&one, &t), &mul(&t, &t)), &q);
    let norm = add(
        &add(&mul(&a, &a), &mul(&mul(&a, &b), &t)),
        &mul(&mul(&b, &b), &q),
    );
    assert_eq!(norm.gcd(&h), one);
}

fn divide(value: ark_ff::BigInt<4>, by: u64) -> ark_ff::BigInt<4> {
    let mut quotient = ark_ff::BigInt::<4>::zero();
    let mut remainder = 0u128;
    for index in (0..4).rev() {
        let part = (remainder << 64) | u128::from(value.0[index]);
        quotient.0[index] =
            u64::try_from(part / u128::from(by)).expect("remainder is below the divisor");
        remainder = part % u128::from(by);
    }
    assert_eq!(remainder, 0);
    quotient
}

/// A 256-bit integer with the few operations that a gcd needs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wide(ark_ff::BigInt<4>);

impl Wide {
    fn from_limbs(limbs: &[u64]) -> Self {
        let mut value = ark_ff::BigInt::<4>::zero();
        value.0[..limbs.len()].copy_from_slice(limbs);
        Self(value)
    }

    fn rem(&self, modulus: &Self) -> Self {
        let mut value = self.0;
        while value >= modulus.0 {
            value.sub_with_borrow(&modulus.0);
        }
        Self(value)
    }

    fn add_mod(&self, other: &Self, modulus: &Self) -> Self {
        // Both are below the modulus, which is below 2^254: no overflow.
        let mut sum = self.0;
        sum.add_with_carry(&other.0);
        Self(sum).rem(modulus)
    }

    fn sub_mod(&self, other: &Self, modulus: &Self) -> Self {
        let mut difference = self.rem(modulus).0;
        difference.add_with_carry(&modulus.0);
        difference.sub_with_borrow(&other.rem(modulus).0);
        Self(difference).rem(modulus)
    }

    fn mul_mod(&self, other: &Self, modulus: &Self) -> Self {
        let mut product = Self::from_limbs(&[]);
        for index in (0..256).rev() {
            product = product.add_mod(&product, modulus);
            if other.0.get_bit(index) {
                product = product.add_mod(&self.rem(modulus), modulus);
            }
        }
        product
    }

    fn gcd(&self, other: &Self) -> Self {
        let (mut u, mut v) = (self.0, other.0);
        // Binary gcd; the modulus is odd.
        while !u.is_zero() {
            while u.is_even() {
                u.div2();
            }
            if u < v {
                std::mem::swap(&mut u, &mut v);
            }
            u.sub_with_borrow(&v);
        }
        Self(v)
    }
}

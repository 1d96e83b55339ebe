//! Sums `Σ x_i·P_i` in G1: from tables made once for points that return, and without tables for points that do not.
//!
//! Scalars are cut into signed digits of [`DIGIT_BITS`] bits, so a table holds 16 multiples for each of 51 positions:
//! 52,224 bytes a point, and a sum is 51 affine additions a point with no doubling. Additions are made in affine
//! coordinates many at a time, sharing one inversion; the last few in projective coordinates.
//! Inputs are public: time may depend on them.

use ark_bn254::{Fq, Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, PrimeField, Zero};

const DIGIT_BITS: usize = 5;
/// Digits of a scalar: 255 bits hold 254 and the carry of the signed form.
const DIGIT_COUNT: usize = 51;
/// Digits run from -15 to 16.
const MULTIPLE_COUNT: usize = 16;
/// Below this count a shared inversion costs more than it saves.
const AFFINE_SUM_MIN: usize = 128;

/// Multiples of fixed points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixedBases {
    /// `multiples[(point·51 + position)·16 + digit - 1]` = digit·32^position·point.
    multiples: Vec<G1Affine>,
}

impl FixedBases {
    pub(crate) fn new(points: &[G1Affine]) -> Self {
        let mut multiples = Vec::with_capacity(points.len() * DIGIT_COUNT * MULTIPLE_COUNT);
        for point in points {
            let mut projective = Vec::with_capacity(DIGIT_COUNT * MULTIPLE_COUNT);
            let mut unit = point.into_group();
            for _ in 0..DIGIT_COUNT {
                push_multiples(unit, &mut projective);
                for _ in 0..DIGIT_BITS {
                    unit.double_in_place();
                }
            }
            multiples.extend(normalise(&projective));
        }
        Self { multiples }
    }

    /// `constant + Σ scalars[i]·points[i]`. There are as many scalars as points: callers have checked.
    pub(crate) fn sum(&self, constant: G1Affine, scalars: &[Fr]) -> G1Projective {
        let mut terms = Vec::with_capacity(scalars.len() * DIGIT_COUNT + 1);
        terms.push(constant);
        for (scalar, multiples) in scalars
            .iter()
            .zip(self.multiples.chunks_exact(DIGIT_COUNT * MULTIPLE_COUNT))
        {
            let positions = multiples.chunks_exact(MULTIPLE_COUNT);
            for (digit, multiples) in digits(scalar).into_iter().zip(positions) {
                terms.extend(pick(digit, multiples));
            }
        }
        sum_affine(terms)
    }
}

/// `constant + Σ scalars[i]·points[i]` for points met once: interleaved windows with the doublings shared.
pub(crate) fn sum_variable(
    constant: G1Affine,
    points: &[G1Affine],
    scalars: &[Fr],
) -> G1Projective {
    let mut projective = Vec::with_capacity(points.len() * MULTIPLE_COUNT);
    for point in points {
        push_multiples(point.into_group(), &mut projective);
    }
    let multiples = normalise(&projective);
    let digits: Vec<_> = scalars.iter().map(digits).collect();
    let mut total = G1Projective::zero();
    for position in (0..DIGIT_COUNT).rev() {
        for _ in 0..DIGIT_BITS {
            total.double_in_place();
        }
        let terms = digits
            .iter()
            .zip(multiples.chunks_exact(MULTIPLE_COUNT))
            .filter_map(|(digits, multiples)| pick(digits[position], multiples))
            .collect();
        total += sum_affine(terms);
    }
    total + constant
}

/// Replaces each value by its inverse with one inversion; zero stays zero.
pub(crate) fn invert_all<F: Field>(values: &mut [F]) {
    let mut products = Vec::with_capacity(values.len());
    let mut product = F::one();
    for value in values.iter().filter(|value| !value.is_zero()) {
        products.push(product);
        product *= value;
    }
    let mut inverse = product
        .inverse()
        .expect("a product of nonzero field elements is not zero");
    for value in values.iter_mut().rev().filter(|value| !value.is_zero()) {
        let before = products.pop().expect("one product was kept per value");
        let next = inverse * *value;
        *value = inverse * before;
        inverse = next;
    }
}

/// 1, 2, …, 16 times `unit`.
fn push_multiples(unit: G1Projective, out: &mut Vec<G1Projective>) {
    let mut multiple = unit;
    for _ in 0..MULTIPLE_COUNT {
        out.push(multiple);
        multiple += unit;
    }
}

/// Affine forms with one inversion, on this thread: the library's own would enter a thread pool.
fn normalise(points: &[G1Projective]) -> Vec<G1Affine> {
    let mut inverses: Vec<Fq> = points.iter().map(|point| point.z).collect();
    invert_all(&mut inverses);
    points
        .iter()
        .zip(inverses)
        .map(|(point, inverse)| {
            if inverse.is_zero() {
                return G1Affine::identity();
            }
            let square = inverse.square();
            G1Affine::new_unchecked(point.x * square, point.y * square * inverse)
        })
        .collect()
}

/// Signed digits, least significant first: scalar = Σ digit·32^position.
fn digits(scalar: &Fr) -> [i8; DIGIT_COUNT] {
    let limbs = scalar.into_bigint().0;
    let mut carry = 0;
    std::array::from_fn(|position| {
        let bit = position * DIGIT_BITS;
        let (limb, shift) = (bit / 64, bit % 64);
        let mut raw = limbs[limb] >> shift;
        if shift + DIGIT_BITS > 64 && limb + 1 < limbs.len() {
            raw |= limbs[limb + 1] << (64 - shift);
        }
        let digit = (raw & 31) as i8 + carry;
        carry = i8::from(digit > 16);
        if carry == 1 { digit - 32 } else { digit }
    })
}

fn pick(digit: i8, multiples: &[G1Affine]) -> Option<G1Affine> {
    let multiple = multiples.get(usize::from(digit.unsigned_abs()).checked_sub(1)?)?;
    Some(if digit < 0 { -*multiple } else { *multiple })
}

/// Sum of points, halving the list with one inversion a round while it is long.
fn sum_affine(mut points: Vec<G1Affine>) -> G1Projective {
    let mut denominators = Vec::new();
    while points.len() >= AFFINE_SUM_MIN {
        let half = points.len() / 2;
        let (low, rest) = points.split_at_mut(half);
        denominators.clear();
        denominators.extend(low.iter().zip(&*rest).map(|(p, q)| denominator(p, q)));
        invert_all(&mut denominators);
        for ((p, q), inverse) in low.iter_mut().zip(&*rest).zip(&denominators) {
            *p = add_affine(p, q, inverse);
        }
        if points.len() % 2 == 1 {
            points[half] = points[points.len() - 1];
            points.truncate(half + 1);
        } else {
            points.truncate(half);
        }
    }
    points
        .iter()
        .fold(G1Projective::zero(), |sum, point| sum + point)
}

/// What the slope of the line through p and q is divided by; zero where there is no slope.
fn denominator(p: &G1Affine, q: &G1Affine) -> Fq {
    if p.is_zero() || q.is_zero() {
        Fq::zero()
    } else if p.x != q.x {
        q.x - p.x
    } else if p.y == q.y {
        p.y.double()
    } else {
        Fq::zero()
    }
}

fn add_affine(p: &G1Affine, q: &G1Affine, inverse: &Fq) -> G1Affine {
    if p.is_zero() {
        return *q;
    }
    if q.is_zero() {
        return *p;
    }
    if inverse.is_zero() {
        return G1Affine::identity();
    }
    let slope = if p.x == q.x {
        let xx = p.x.square();
        (xx.double() + xx) * inverse
    } else {
        (q.y - p.y) * inverse
    };
    let x = slope.square() - p.x - q.x;
    let y = slope * (p.x - x) - p.y;
    G1Affine::new_unchecked(x, y)
}

/// The affine form of a sum; the identity if it is that.
pub(crate) fn to_affine(point: G1Projective) -> G1Affine {
    point.into_affine()
}

#[cfg(test)]
mod tests;

//! The optimal ate pairing's Miller loop over BN254, split into the part that depends on the point of G2 (a [`Trace`],
//! reusable) and the part that depends on the point of G1.
//!
//! Tracing a point Q ends at `[6x+2]Q + ψ(Q) - ψ²(Q)`, where ψ is the untwist-Frobenius-twist endomorphism. For Q in
//! the subgroup of order r that equals `-ψ³(Q)`, and for no other point of the twist: ψ satisfies
//! `ψ² - tψ + q = 0` with t = 6x² + 1, hence `6x + 2 + ψ - ψ² + ψ³` has the norm N = a² + abt + b²q with
//! a = 6x + 2 + q - tq and b = 1 - t + t² - q, and gcd(N, h) = 1 for the twist's cofactor h. A part of Q of order
//! dividing h would have to be killed by N, so it is trivial. The subgroup check thus costs three Frobenius maps instead
//! of a scalar multiplication. `tests.rs` recomputes the gcd and tries points of small order.
//!
//! Sources: Costello, Lange, Naehrig, "Faster pairing computations on curves with high-degree twists", 2010 (lines in
//! homogeneous coordinates); Vercauteren, "Optimal pairings", 2008; El Housni, Guillevic, Piellard, 2022/352 (subgroup
//! membership by endomorphism).

use ark_bn254::{Bn254, Config, Fq, Fq2, Fq6, Fq12, Fq12Config, G1Affine, G2Affine};
use ark_ec::{
    AffineRepr,
    bn::BnConfig,
    pairing::{MillerLoopOutput, Pairing, PairingOutput},
    short_weierstrass::SWCurveConfig,
};
use ark_ff::{AdditiveGroup, Field, Fp12Config, MontFp, One, Zero};

const _: () = assert!(!Config::X_IS_NEGATIVE);

const TWO_INVERSE: Fq =
    MontFp!("10944121435919637611123202872628637544348155578648911831344518947322613104292");

/// Value at (x, y) of G1: `y·at_y + x·at_x·w + constant·w³`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    at_y: Fq2,
    at_x: Fq2,
    constant: Fq2,
}

/// The lines that the Miller loop of one point of G2 evaluates, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace(Vec<Line>);

/// A trace scaled so that `at_y` is 1 in every line: three multiplications less at each of the steps.
/// The factors lie in Fq2 and vanish in the final exponentiation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixedTrace(Vec<(Fq2, Fq2)>);

/// A point of G1 as a [`FixedTrace`] wants it: (x/y, 1/y).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluation {
    x_over_y: Fq,
    one_over_y: Fq,
}

impl Evaluation {
    /// `None` for the identity, whose pairing is 1 with anything.
    pub(crate) fn of(points: [G1Affine; 2]) -> [Option<Self>; 2] {
        // One inversion for both. y is never zero but in the identity: the group has odd order.
        let [first, second] = points;
        let with = |point: G1Affine, one_over_y: Fq| {
            Some(Self {
                x_over_y: point.x * one_over_y,
                one_over_y,
            })
        };
        let single = |point: G1Affine| point.y.inverse().and_then(|inverse| with(point, inverse));
        match (first.y * second.y).inverse() {
            Some(inverse) => [
                with(first, inverse * second.y),
                with(second, inverse * first.y),
            ],
            None => [single(first), single(second)],
        }
    }
}

impl Trace {
    /// Traces a point of the twist; `None` if it is not in the subgroup of order r. The identity is not: callers name it.
    pub(crate) fn of(point: &G2Affine) -> Option<Self> {
        if point.is_zero() {
            return None;
        }
        let mut lines = Vec::with_capacity(2 * Config::ATE_LOOP_COUNT.len());
        let mut walk = Walk {
            x: point.x,
            y: point.y,
            z: Fq2::one(),
        };
        let negated = -*point;
        for digit in Config::ATE_LOOP_COUNT.iter().rev().skip(1) {
            lines.push(walk.double());
            match digit {
                1 => lines.push(walk.add(point)),
                -1 => lines.push(walk.add(&negated)),
                _ => {}
            }
        }
        let once = frobenius(point);
        let twice_negated = -frobenius(&frobenius(point));
        lines.push(walk.add(&once));
        lines.push(walk.add(&twice_negated));
        walk.is(&frobenius(&twice_negated)).then_some(Self(lines))
    }

    /// Normalised once for a point that is paired again and again.
    pub(crate) fn fix(&self) -> FixedTrace {
        let mut inverses: Vec<Fq2> = self.0.iter().map(|line| line.at_y).collect();
        crate::msm::invert_all(&mut inverses);
        FixedTrace(
            self.0
                .iter()
                .zip(inverses)
                .map(|(line, inverse)| (line.at_x * inverse, line.constant * inverse))
                .collect(),
        )
    }
}

/// The running multiple of a point, in homogeneous projective coordinates. A point outside the subgroup may meet a case
/// that the formulas do not cover; z is then zero, stays zero, and [`Walk::is`] answers no.
struct Walk {
    x: Fq2,
    y: Fq2,
    z: Fq2,
}

impl Walk {
    fn double(&mut self) -> Line {
        let xy_half = half(self.x * self.y);
        let yy = self.y.square();
        let zz = self.z.square();
        // 3b' z²
        let bzz = <ark_bn254::g2::Config as SWCurveConfig>::COEFF_B * (zz.double() + zz);
        let bzz_3 = bzz.double() + bzz;
        let middle = half(yy + bzz_3);
        let yz_2 = (self.y + self.z).square() - (yy + zz);
        let xx = self.x.square();
        let bzz_squared = bzz.square();
        self.x = xy_half * (yy - bzz_3);
        self.y = middle.square() - (bzz_squared.double() + bzz_squared);
        self.z = yy * yz_2;
        Line {
            at_y: -yz_2,
            at_x: xx.double() + xx,
            constant: bzz - yy,
        }
    }

    fn add(&mut self, other: &G2Affine) -> Line {
        let rise = self.y - other.y * self.z;
        let run = self.x - other.x * self.z;
        let rise_2 = rise.square();
        let run_2 = run.square();
        let run_3 = run_2 * run;
        let x_run_2 = self.x * run_2;
        let shared = run_3 + self.z * rise_2 - x_run_2.double();
        self.x = run * shared;
        self.y = rise * (x_run_2 - shared) - run_3 * self.y;
        self.z *= run_3;
        Line {
            at_y: run,
            at_x: -rise,
            constant: rise * other.x - run * other.y,
        }
    }

    fn is(&self, point: &G2Affine) -> bool {
        !self.z.is_zero() && self.x == point.x * self.z && self.y == point.y * self.z
    }
}

/// ψ, the Frobenius of the curve carried over to the twist.
fn frobenius(point: &G2Affine) -> G2Affine {
    let mut image = *point;
    image.x.frobenius_map_in_place(1);
    image.y.frobenius_map_in_place(1);
    image.x *= Config::TWIST_MUL_BY_Q_X;
    image.y *= Config::TWIST_MUL_BY_Q_Y;
    image
}

fn half(mut value: Fq2) -> Fq2 {
    value.mul_assign_by_fp(&TWO_INVERSE);
    value
}

/// Product of the Miller loops of all pairs, not yet exponentiated.
pub(crate) fn miller_loop(
    variable: &[(G1Affine, &Trace)],
    fixed: &[(Evaluation, &FixedTrace)],
) -> Fq12 {
    let mut product = Fq12::one();
    let mut step = 0;
    let mut evaluate = |product: &mut Fq12| {
        for (point, trace) in variable {
            let Line {
                mut at_y,
                mut at_x,
                constant,
            } = trace.0[step];
            at_y.mul_assign_by_fp(&point.y);
            at_x.mul_assign_by_fp(&point.x);
            product.mul_by_034(&at_y, &at_x, &constant);
        }
        for (point, trace) in fixed {
            let (mut at_x, mut constant) = trace.0[step];
            at_x.mul_assign_by_fp(&point.x_over_y);
            constant.mul_assign_by_fp(&point.one_over_y);
            multiply_by_one_plus(product, &at_x, &constant);
        }
        step += 1;
    };
    for (index, digit) in Config::ATE_LOOP_COUNT.iter().rev().skip(1).enumerate() {
        if index > 0 {
            product.square_in_place();
        }
        evaluate(&mut product);
        if *digit != 0 {
            evaluate(&mut product);
        }
    }
    evaluate(&mut product);
    evaluate(&mut product);
    product
}

/// Multiplies by `1 + at_w·w + at_w3·w³`.
fn multiply_by_one_plus(product: &mut Fq12, at_w: &Fq2, at_w3: &Fq2) {
    let mut low: Fq6 = product.c0;
    let mut high: Fq6 = product.c1;
    low.mul_by_01(at_w, at_w3);
    high.mul_by_01(at_w, at_w3);
    Fq12Config::mul_fp6_by_nonresidue_in_place(&mut high);
    product.c0 += high;
    product.c1 += low;
}

/// The pairing's value. `None` only for a zero product, which no Miller loop of points on the curves gives.
pub(crate) fn final_exponentiation(product: Fq12) -> Option<Fq12> {
    Bn254::final_exponentiation(MillerLoopOutput(product)).map(|PairingOutput(value)| value)
}

#[cfg(test)]
mod tests;

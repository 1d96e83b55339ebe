use super::*;
use ark_bn254::G1Projective as G1;
use ark_ec::PrimeGroup;
use ark_ff::{One, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};

fn rng() -> StdRng {
    StdRng::seed_from_u64(31)
}

fn naive(constant: G1Affine, points: &[G1Affine], scalars: &[Fr]) -> G1 {
    points
        .iter()
        .zip(scalars)
        .fold(constant.into_group(), |sum, (p, x)| sum + *p * x)
}

fn check(constant: G1Affine, points: &[G1Affine], scalars: &[Fr]) {
    let expected = naive(constant, points, scalars);
    assert_eq!(FixedBases::new(points).sum(constant, scalars), expected);
    assert_eq!(sum_variable(constant, points, scalars), expected);
}

#[test]
fn both_sums_equal_the_naive_one() {
    let rng = &mut rng();
    for count in [1, 2, 3, 10, 57, 100] {
        let points: Vec<_> = (0..count).map(|_| G1::rand(rng).into_affine()).collect();
        let scalars: Vec<_> = (0..count).map(|_| Fr::rand(rng)).collect();
        check(G1::rand(rng).into_affine(), &points, &scalars);
    }
}

#[test]
fn edge_scalars_are_exact() {
    let rng = &mut rng();
    let mut scalars = vec![Fr::zero(), Fr::one(), -Fr::one(), -Fr::from(2u8)];
    for bits in 1..254 {
        let power = Fr::from(2u8).pow([bits]);
        scalars.extend([power - Fr::one(), power, power + Fr::one()]);
    }
    let points: Vec<_> = scalars
        .iter()
        .map(|_| G1::rand(rng).into_affine())
        .collect();
    check(G1::rand(rng).into_affine(), &points, &scalars);
    let digits_of_minus_one = digits(&-Fr::one());
    assert!(digits_of_minus_one.iter().all(|d| (-15..=16).contains(d)));
}

#[test]
fn equal_opposite_and_identity_points_are_added_right() {
    let rng = &mut rng();
    let point = G1::rand(rng).into_affine();
    let count = 2 * AFFINE_SUM_MIN;
    let scalar = Fr::rand(rng);
    check(point, &vec![point; count], &vec![scalar; count]);
    check(-point, &vec![point; count], &vec![Fr::one(); count]);
    let alternating: Vec<_> = (0..count)
        .map(|index| if index % 2 == 0 { point } else { -point })
        .collect();
    check(G1Affine::identity(), &alternating, &vec![scalar; count]);
    let halves = [vec![point; AFFINE_SUM_MIN], vec![-point; AFFINE_SUM_MIN]].concat();
    assert!(sum_affine(halves).is_zero());
    let mut with_identity = vec![G1Affine::identity(); count];
    with_identity[3] = point;
    with_identity[count - 1] = G1::generator().into_affine();
    check(point, &with_identity, &vec![scalar; count]);
}

#[test]
fn inverts_all_but_zero() {
    let mut values = [Fr::from(3u8), Fr::zero(), Fr::from(5u8), Fr::zero()];
    invert_all(&mut values);
    assert_eq!(values[0] * Fr::from(3u8), Fr::one());
    assert_eq!(values[2] * Fr::from(5u8), Fr::one());
    assert!(values[1].is_zero() && values[3].is_zero());
}

//! Keys under which false proofs can be written down are refused, and these are the proofs.

mod common;

use ark_bn254::{Fr, G1Projective, G2Projective};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{One, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use cloister_groth16::{
    EncodingError, KeyError, KeyPoint, PUBLIC_INPUT_COUNT_MAX, PreparedVerifyingKey, Proof,
    PublicInputs, VerifyingKey, verify_unprepared,
};
use common::simulated::{Setup, g1_bytes, g2_bytes, scalars};

/// A way to spoil a setup.
type Change<T> = fn(&mut Setup, T);

fn rng() -> StdRng {
    StdRng::seed_from_u64(35)
}

fn refusal(setup: &Setup) -> KeyError {
    VerifyingKey::parse(&setup.key()).expect_err("key is refused")
}

/// Verdict on proof and inputs under a key that was not checked.
fn accepts_unchecked(setup: &Setup, proof: &[u8], inputs: &[Fr]) -> bool {
    let key = VerifyingKey::parse_unchecked(&setup.key()).expect("well formed");
    let proof = Proof::parse(proof).expect("points");
    let inputs = PublicInputs::parse(&scalars(inputs)).expect("scalars");
    let verdict = verify_unprepared(&key, &proof, &inputs).expect("as many inputs as the key has");
    assert_eq!(
        PreparedVerifyingKey::new(key).verify(&proof, &inputs),
        Ok(verdict)
    );
    verdict
}

/// What the public can compute from a key: its points, and no exponent.
struct Public {
    alpha: G1Projective,
    beta: G2Projective,
    delta: G2Projective,
    folded: G1Projective,
}

fn public(setup: &Setup, inputs: &[Fr]) -> Public {
    let (g1, g2) = (G1Projective::generator(), G2Projective::generator());
    Public {
        alpha: g1 * setup.alpha,
        beta: g2 * setup.beta,
        delta: g2 * setup.delta,
        folded: g1 * setup.folded(inputs),
    }
}

fn proof(a: G1Projective, b: G2Projective, c: G1Projective) -> Vec<u8> {
    [
        g1_bytes(a.into_affine()),
        g2_bytes(b.into_affine()),
        g1_bytes(c.into_affine()),
    ]
    .concat()
}

#[test]
fn refuses_gamma_equal_or_opposite_to_delta_for_which_anyone_can_forge() {
    let rng = &mut rng();
    for sign in [Fr::one(), -Fr::one()] {
        let mut setup = Setup::random(3, rng);
        setup.gamma = sign * setup.delta;
        assert_eq!(
            refusal(&setup),
            KeyError::Coincide {
                first: KeyPoint::Gamma,
                second: KeyPoint::Delta
            }
        );
        let inputs = [Fr::rand(rng), Fr::rand(rng), Fr::rand(rng)];
        let known = public(&setup, &inputs);
        let forged = proof(known.alpha, known.beta, known.folded * -sign);
        assert!(accepts_unchecked(&setup, &forged, &inputs));
    }
}

#[test]
fn refuses_beta_equal_or_opposite_to_gamma_for_which_anyone_can_forge() {
    let rng = &mut rng();
    for sign in [Fr::one(), -Fr::one()] {
        let mut setup = Setup::random(2, rng);
        setup.beta = sign * setup.gamma;
        assert_eq!(
            refusal(&setup),
            KeyError::Coincide {
                first: KeyPoint::Beta,
                second: KeyPoint::Gamma
            }
        );
        let inputs = [Fr::rand(rng), Fr::rand(rng)];
        let known = public(&setup, &inputs);
        let (a, s) = (known.alpha + known.folded * sign, Fr::rand(rng));
        let forged = proof(a, known.beta + known.delta * s, a * s);
        assert!(accepts_unchecked(&setup, &forged, &inputs));
    }
}

#[test]
fn refuses_beta_equal_or_opposite_to_delta() {
    let rng = &mut rng();
    for sign in [Fr::one(), -Fr::one()] {
        let mut setup = Setup::random(1, rng);
        setup.beta = sign * setup.delta;
        assert_eq!(
            refusal(&setup),
            KeyError::Coincide {
                first: KeyPoint::Beta,
                second: KeyPoint::Delta
            }
        );
    }
}

#[test]
fn refuses_generators_and_their_negatives() {
    let rng = &mut rng();
    for one in [Fr::one(), -Fr::one()] {
        let changes: [(KeyPoint, Change<Fr>); 4] = [
            (KeyPoint::Alpha, |setup, one| setup.alpha = one),
            (KeyPoint::Beta, |setup, one| setup.beta = one),
            (KeyPoint::Gamma, |setup, one| setup.gamma = one),
            (KeyPoint::Delta, |setup, one| setup.delta = one),
        ];
        for (point, change) in changes {
            let mut setup = Setup::random(2, rng);
            change(&mut setup, one);
            assert_eq!(refusal(&setup), KeyError::Generator { point });
        }
    }
}

#[test]
fn refuses_the_identity_in_every_place() {
    let rng = &mut rng();
    let changes: [(KeyPoint, Change<()>); 7] = [
        (KeyPoint::Alpha, |setup, ()| setup.alpha = Fr::zero()),
        (KeyPoint::Beta, |setup, ()| setup.beta = Fr::zero()),
        (KeyPoint::Gamma, |setup, ()| setup.gamma = Fr::zero()),
        (KeyPoint::Delta, |setup, ()| setup.delta = Fr::zero()),
        (KeyPoint::Ic(0), |setup, ()| setup.ic[0] = Fr::zero()),
        (KeyPoint::Ic(1), |setup, ()| setup.ic[1] = Fr::zero()),
        (KeyPoint::Ic(4), |setup, ()| setup.ic[4] = Fr::zero()),
    ];
    for (point, change) in changes {
        let mut setup = Setup::random(4, rng);
        change(&mut setup, ());
        let source = EncodingError::Identity;
        assert_eq!(refusal(&setup), KeyError::Point { point, source });
    }
}

#[test]
fn refuses_inputs_with_one_point_for_which_a_proof_serves_many_statements() {
    let rng = &mut rng();
    for sign in [Fr::one(), -Fr::one()] {
        let mut setup = Setup::random(4, rng);
        setup.ic[4] = sign * setup.ic[2];
        let refused = refusal(&setup);
        assert_eq!(
            refused,
            KeyError::UnboundInputs {
                first: KeyPoint::Ic(2),
                second: KeyPoint::Ic(4)
            }
        );
        let mut inputs: Vec<_> = (0..4).map(|_| Fr::rand(rng)).collect();
        let proof = setup.prove(&inputs, rng);
        assert!(accepts_unchecked(&setup, &proof, &inputs));
        let shift = Fr::rand(rng);
        inputs[1] += shift;
        inputs[3] -= sign * shift;
        assert!(accepts_unchecked(&setup, &proof, &inputs));
    }
}

#[test]
fn refuses_a_key_without_inputs_or_with_too_many() {
    let rng = &mut rng();
    for got in [0, PUBLIC_INPUT_COUNT_MAX + 1] {
        assert_eq!(
            refusal(&Setup::random(got, rng)),
            KeyError::InputCount { got }
        );
    }
}

#[test]
fn keys_of_every_size_accept_true_proofs_only() {
    let rng = &mut rng();
    for count in [1, 2, 7, 100, 282, PUBLIC_INPUT_COUNT_MAX] {
        let setup = Setup::random(count, rng);
        let key = VerifyingKey::parse(&setup.key()).expect("key may be used");
        let prepared = PreparedVerifyingKey::new(key.clone());
        let mut inputs: Vec<_> = (0..count).map(|_| Fr::rand(rng)).collect();
        inputs[0] = -Fr::one();
        let proof = Proof::parse(&setup.prove(&inputs, rng)).expect("points");
        let parse = |inputs: &[Fr]| PublicInputs::parse(&scalars(inputs)).expect("scalars");
        let honest = parse(&inputs);
        assert_eq!(prepared.verify(&proof, &honest), Ok(true));
        assert_eq!(verify_unprepared(&key, &proof, &honest), Ok(true));
        inputs[count - 1] += Fr::one();
        let changed = parse(&inputs);
        assert_eq!(prepared.verify(&proof, &changed), Ok(false));
        assert_eq!(verify_unprepared(&key, &proof, &changed), Ok(false));
    }
}

/// The inputs' sum is the identity: the second pairing is 1.
#[test]
fn inputs_may_fold_to_the_identity() {
    let rng = &mut rng();
    let setup = Setup::random(1, rng);
    let inputs = [-setup.ic[0] / setup.ic[1]];
    assert!(setup.folded(&inputs).is_zero());
    let proof = setup.prove(&inputs, rng);
    assert!(accepts_unchecked(&setup, &proof, &inputs));
    assert!(!accepts_unchecked(&setup, &proof, &[inputs[0] + Fr::one()]));
}

/// Anyone turns a proof into others of the same statement: proof bytes name nothing.
#[test]
fn a_rerandomised_proof_verifies() {
    let rng = &mut rng();
    let setup = Setup::random(2, rng);
    let inputs = [Fr::rand(rng), Fr::rand(rng)];
    let (g1, g2) = (G1Projective::generator(), G2Projective::generator());
    let (a, b) = (Fr::rand(rng), Fr::rand(rng));
    let c = (a * b - setup.alpha * setup.beta - setup.folded(&inputs) * setup.gamma) / setup.delta;
    let (a, b, c) = (g1 * a, g2 * b, g1 * c);
    let original = proof(a, b, c);
    assert!(accepts_unchecked(&setup, &original, &inputs));
    let delta = g2 * setup.delta;
    for _ in 0..8 {
        let s = Fr::rand(rng);
        for other in [
            proof(a * s, b * (Fr::one() / s), c),
            proof(a, b + delta * s, c + a * s),
            proof(-a, -b, c),
        ] {
            assert_ne!(other, original);
            assert!(accepts_unchecked(&setup, &other, &inputs));
            assert!(!accepts_unchecked(&setup, &other, &[inputs[0], inputs[0]]));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// The validators of a consortium's chain. Members are accounts; each has one validator and one vote. A change of the
/// set is proposed by a member and done once more than two thirds of the members of that moment have voted for it.
///
/// The contract says which set is wanted. The node reads it after the transactions of every block, tells consensus in
/// steps below one third of the power, and writes what only it can know: downtime, jail, double signing, the set given.
/// Code and first storage come from genesis: there is no constructor. The layout is part of the node's code: variables
/// here may be appended, never moved.
contract ValidatorRegistry {
    enum Status {
        Active, // wanted in the set
        Jailed, // out for downtime until it unjails itself
        Barred // out for double signing until the members give it another key
    }

    enum KeyState {
        Unknown,
        Held, // key of a validator
        Released, // was one; may be used again
        Barred // signed twice: never again
    }

    enum Action {
        Add,
        Remove,
        SetPower,
        Rotate
    }

    struct Validator {
        bytes32 publicKey;
        address member;
        uint64 power;
        Status status;
        address payout;
        uint64 jailedUntil;
    }

    struct Key {
        address payout;
        KeyState state;
    }

    struct ActiveValidator {
        bytes32 publicKey;
        address consensusAddress;
        uint64 power;
        uint32 missed;
    }

    struct Proposal {
        address member;
        uint64 power;
        Action action;
        bool executed;
        address payout;
        uint64 expires;
        bytes32 publicKey;
        uint64 nonce;
    }

    /// What the members want. (slot 0)
    Validator[] public validators;
    /// Place of a member's validator, plus one; 0 for who is no member. (slot 1)
    mapping(address member => uint256) public indexPlusOne;
    /// Consensus keys ever used, by their address in consensus. (slot 2)
    mapping(address consensusAddress => Key) public keys;
    /// What the next key of a member must sign. (slot 3)
    mapping(address member => uint64) public nonces;
    /// 1 while the set given to consensus differs from the one wanted. (slot 4)
    uint256 public pending;
    /// The set given to consensus, sorted by public key; written by the node. (slot 5)
    ActiveValidator[] public active;
    /// Ring of bits, one for each block missed; written by the node. (slot 6)
    mapping(address consensusAddress => mapping(uint256 word => uint256)) public missedBlocks;
    /// Proposals are numbered from 1. (slot 7)
    uint256 public proposalCount;
    /// All proposals. (slot 8)
    mapping(uint256 id => Proposal) public proposals;
    /// Who voted for what. (slot 9)
    mapping(uint256 id => mapping(address member => bool)) public voted;

    uint256 public constant VALIDATORS_MAX = 128;
    uint64 public constant POWER_MIN = 4;
    /// Largest sum of powers that consensus takes: (2^63 - 1) / 8.
    uint64 public constant TOTAL_POWER_MAX = 1152921504606846975;
    /// A proposal not adopted within so many blocks lapses: a week at one block a second.
    uint64 public constant PROPOSAL_BLOCKS = 604800;
    /// First word of what a new key signs. No vote or proposal of consensus begins like this.
    bytes32 public constant KEY_DOMAIN = keccak256("cloister/ValidatorRegistry/key/1");
    /// The ed25519 precompile: public key || signature || message, answers 1 or 0; takes canonical keys only.
    address private constant ED25519_VERIFY = address(0x0c07);

    event Proposed(uint256 indexed id, Action action, address indexed member, address indexed by);
    event Voted(uint256 indexed id, address indexed by);
    event Executed(uint256 indexed id);
    event PayoutSet(address indexed member, address payout);
    event Unjailed(address indexed member);

    error NotMember(address account);
    error AlreadyMember(address account);
    error ZeroAddress();
    error KeyNotFree(address consensusAddress);
    error BadSignature();
    error StaleNonce(uint64 expected, uint64 got);
    error PowerTooSmall(uint64 power);
    error TotalPowerTooLarge(uint256 total);
    error TooManyValidators();
    error LastValidator();
    error UnknownProposal(uint256 id);
    error AlreadyExecuted(uint256 id);
    error Lapsed(uint256 id);
    error AlreadyVoted(uint256 id, address member);
    error NotJailed();
    error StillJailed(uint64 until);

    modifier onlyMember() {
        require(indexPlusOne[msg.sender] != 0, NotMember(msg.sender));
        _;
    }

    /// Proposes a new member with its validator. `signature`: by the new key, over `keyMessage`.
    function proposeAdd(
        address member,
        bytes32 publicKey,
        uint64 power,
        address payout,
        bytes calldata signature
    ) external onlyMember returns (uint256 id) {
        require(member != address(0), ZeroAddress());
        checkSignature(member, publicKey, payout, signature);
        Proposal memory proposal;
        proposal.action = Action.Add;
        proposal.member = member;
        proposal.publicKey = publicKey;
        proposal.power = power;
        proposal.payout = payout;
        return propose(proposal);
    }

    /// Proposes that a member and its validator go.
    function proposeRemove(address member) external onlyMember returns (uint256 id) {
        Proposal memory proposal;
        proposal.action = Action.Remove;
        proposal.member = member;
        return propose(proposal);
    }

    /// Proposes another power for a member's validator.
    function proposePower(address member, uint64 power) external onlyMember returns (uint256 id) {
        Proposal memory proposal;
        proposal.action = Action.SetPower;
        proposal.member = member;
        proposal.power = power;
        return propose(proposal);
    }

    /// Proposes another key and payout address for a member's validator; one barred comes back with its new key.
    function proposeRotate(
        address member,
        bytes32 publicKey,
        address payout,
        bytes calldata signature
    ) external onlyMember returns (uint256 id) {
        checkSignature(member, publicKey, payout, signature);
        Proposal memory proposal;
        proposal.action = Action.Rotate;
        proposal.member = member;
        proposal.publicKey = publicKey;
        proposal.payout = payout;
        return propose(proposal);
    }

    /// Votes for a proposal; the vote that makes the quorum carries it out.
    function vote(uint256 id) external onlyMember {
        Proposal storage proposal = proposals[id];
        require(id != 0 && id <= proposalCount, UnknownProposal(id));
        require(!proposal.executed, AlreadyExecuted(id));
        require(block.number <= proposal.expires, Lapsed(id));
        castVote(id);
    }

    /// Sets where the fees of one's own blocks go, from the next block on.
    function setPayout(address payout) external onlyMember {
        Validator storage validator = validatorOf(msg.sender);
        validator.payout = payout;
        keys[consensusAddress(validator.publicKey)].payout = payout;
        emit PayoutSet(msg.sender, payout);
    }

    /// Brings one's own validator back after its term.
    function unjail() external onlyMember {
        Validator storage validator = validatorOf(msg.sender);
        require(validator.status == Status.Jailed, NotJailed());
        require(block.number >= validator.jailedUntil, StillJailed(validator.jailedUntil));
        validator.status = Status.Active;
        pending = 1;
        emit Unjailed(msg.sender);
    }

    function validatorCount() external view returns (uint256) {
        return validators.length;
    }

    function activeCount() external view returns (uint256) {
        return active.length;
    }

    /// Votes that adopt a proposal now: more than two thirds of the members.
    function quorum() public view returns (uint256) {
        return (validators.length * 2) / 3 + 1;
    }

    /// Votes for a proposal by those who are members now.
    function votes(uint256 id) public view returns (uint256 count) {
        uint256 length = validators.length;
        for (uint256 i = 0; i < length; i++) {
            if (voted[id][validators[i].member]) count++;
        }
    }

    /// What a key must sign to become `member`'s.
    function keyMessage(address member, bytes32 publicKey, address payout) public view returns (bytes memory) {
        return abi.encode(KEY_DOMAIN, block.chainid, address(this), member, publicKey, payout, nonces[member]);
    }

    /// Address of a key in consensus: the first 20 bytes of its SHA-256.
    function consensusAddress(bytes32 publicKey) public pure returns (address) {
        return address(bytes20(sha256(abi.encodePacked(publicKey))));
    }

    function propose(Proposal memory proposal) private returns (uint256 id) {
        proposal.nonce = nonces[proposal.member];
        proposal.expires = uint64(block.number) + PROPOSAL_BLOCKS;
        // Refused now rather than by the last vote; checked again then, for much can change in between.
        check(proposal);
        id = ++proposalCount;
        proposals[id] = proposal;
        emit Proposed(id, proposal.action, proposal.member, msg.sender);
        castVote(id);
    }

    function castVote(uint256 id) private {
        require(!voted[id][msg.sender], AlreadyVoted(id, msg.sender));
        voted[id][msg.sender] = true;
        emit Voted(id, msg.sender);
        if (votes(id) < quorum()) return;
        Proposal memory proposal = proposals[id];
        check(proposal);
        proposals[id].executed = true;
        execute(proposal);
        pending = 1;
        emit Executed(id);
    }

    /// Whether a proposal can be carried out as things are.
    function check(Proposal memory proposal) private view {
        Action action = proposal.action;
        if (action == Action.Add) {
            require(indexPlusOne[proposal.member] == 0, AlreadyMember(proposal.member));
            require(validators.length < VALIDATORS_MAX, TooManyValidators());
        } else {
            require(indexPlusOne[proposal.member] != 0, NotMember(proposal.member));
        }
        if (action == Action.Add || action == Action.Rotate) {
            uint64 nonce = nonces[proposal.member];
            require(proposal.nonce == nonce, StaleNonce(nonce, proposal.nonce));
            address key = consensusAddress(proposal.publicKey);
            KeyState state = keys[key].state;
            require(state == KeyState.Unknown || state == KeyState.Released, KeyNotFree(key));
        }
        if (action == Action.Add || action == Action.SetPower) {
            require(proposal.power >= POWER_MIN, PowerTooSmall(proposal.power));
            uint256 total = proposal.power + powerOfOthers(proposal.member);
            require(total <= TOTAL_POWER_MAX, TotalPowerTooLarge(total));
        }
        if (action == Action.Remove) {
            require(anotherActive(proposal.member), LastValidator());
        }
    }

    function execute(Proposal memory proposal) private {
        address member = proposal.member;
        if (proposal.action == Action.Add) {
            nonces[member]++;
            validators.push(
                Validator(proposal.publicKey, member, proposal.power, Status.Active, proposal.payout, 0)
            );
            indexPlusOne[member] = validators.length;
            keys[consensusAddress(proposal.publicKey)] = Key(proposal.payout, KeyState.Held);
        } else if (proposal.action == Action.Remove) {
            release(validatorOf(member).publicKey);
            uint256 last = validators.length;
            uint256 place = indexPlusOne[member];
            if (place != last) {
                Validator memory moved = validators[last - 1];
                validators[place - 1] = moved;
                indexPlusOne[moved.member] = place;
            }
            validators.pop();
            delete indexPlusOne[member];
        } else if (proposal.action == Action.SetPower) {
            validatorOf(member).power = proposal.power;
        } else {
            nonces[member]++;
            Validator storage validator = validatorOf(member);
            release(validator.publicKey);
            validator.publicKey = proposal.publicKey;
            validator.payout = proposal.payout;
            if (validator.status == Status.Barred) validator.status = Status.Active;
            keys[consensusAddress(proposal.publicKey)] = Key(proposal.payout, KeyState.Held);
        }
    }

    /// A key let go keeps its payout address: it proposes for some blocks yet.
    function release(bytes32 publicKey) private {
        Key storage key = keys[consensusAddress(publicKey)];
        if (key.state == KeyState.Held) key.state = KeyState.Released;
    }

    function validatorOf(address member) private view returns (Validator storage) {
        return validators[indexPlusOne[member] - 1];
    }

    function powerOfOthers(address member) private view returns (uint256 total) {
        uint256 length = validators.length;
        for (uint256 i = 0; i < length; i++) {
            if (validators[i].member != member) total += validators[i].power;
        }
    }

    function anotherActive(address member) private view returns (bool) {
        uint256 length = validators.length;
        for (uint256 i = 0; i < length; i++) {
            if (validators[i].member != member && validators[i].status == Status.Active) return true;
        }
        return false;
    }

    function checkSignature(
        address member,
        bytes32 publicKey,
        address payout,
        bytes calldata signature
    ) private view {
        require(signature.length == 64, BadSignature());
        bytes memory message = keyMessage(member, publicKey, payout);
        (bool done, bytes memory answer) =
            ED25519_VERIFY.staticcall(abi.encodePacked(publicKey, signature, message));
        require(done && answer.length == 32 && abi.decode(answer, (uint256)) == 1, BadSignature());
    }
}

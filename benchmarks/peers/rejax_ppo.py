"""Environment steps per second, learning included, of rejax's PPO."""

import argparse

import jax
from catch_gymnax import CatchGymnax
from rejax import PPO
from report import Stopwatch, print_record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=5)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--unroll", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1, help="the library's default is 8")
    parser.add_argument("--minibatches", type=int, default=1, help="the library's default is 16")
    parser.add_argument("--layers", type=int, nargs="*", default=(1, 2), help="of 128 units")
    parser.add_argument("--updates", type=int, default=50, help="in one compiled call")
    args = parser.parse_args()

    for layers in args.layers:
        steps = args.updates * args.envs * args.unroll
        algorithm = PPO.create(
            env=CatchGymnax(),
            num_envs=args.envs,
            num_steps=args.unroll,
            num_epochs=args.epochs,
            num_minibatches=args.minibatches,
            total_timesteps=steps,
            eval_freq=steps,
            skip_initial_evaluation=True,
            agent_kwargs={"hidden_layer_sizes": (128,) * layers, "activation": "relu"},
            learning_rate=1e-3,
            gamma=0.9,
        )
        algorithm = algorithm.replace(eval_callback=lambda algorithm, state, key: ())
        train = jax.jit(lambda state, algorithm=algorithm: algorithm.train(train_state=state)[0])
        state = jax.block_until_ready(train(algorithm.init_state(jax.random.key(0))))
        watch, done = Stopwatch(args.warmup, args.seconds), 0
        while not watch.read(done):
            state = jax.block_until_ready(train(state))
            done += steps
        suffix = "" if layers == 1 else f"_{layers}_layers"
        print_record(f"agent_steps_per_s/rejax{suffix}", watch.steps_per_s)


if __name__ == "__main__":
    main()

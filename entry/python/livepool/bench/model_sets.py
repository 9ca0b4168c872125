"""Sets of models under one name, for `--models`."""

SETS = {
    # What the benchmarks of memory are about, each at the shape at which it is usually quoted.
    "baseline": ("resnet50@32", "vit_l_16@32", "swin_b@32", "convnext_base@32", "densenet201@32", "mobilenet_v2@32",
                 "efficientnet_b0@32", "regnet_y_3_2gf@32", "bert@32x128", "gpt2@8x512", "llama1b@4x1024",
                 "llama1b@1x128", "clip-vision@32", "t5enc@8x256"),
    # One of each family.
    "zoo": ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet",
            "inception_v3", "maxvit_t", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_small", "regnet_y_400mf",
            "resnet50", "resnext50_32x4d", "shufflenet_v2_x1_0", "squeezenet1_0", "swin_t", "swin_v2_t", "vgg11_bn",
            "vit_b_16", "wide_resnet50_2",
            "deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large",
            "mc3_18", "mvit_v2_s", "r2plus1d_18", "r3d_18", "s3d", "swin3d_t",
            "bert", "clip-vision", "deberta-v2", "dinov2", "distilbert", "gemma2", "gpt2", "llama", "mixtral", "opt",
            "qwen2", "t5", "t5enc", "vit-hf", "wav2vec2", "whisper-encoder",
            "gru", "lstm", "unet"),
}


def expand(names):
    """`names` with the names of sets replaced by their models, in order, each once."""
    return tuple(dict.fromkeys(model for name in names for model in SETS.get(name, (name,))))
